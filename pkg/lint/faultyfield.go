package lint

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	kubejson "sigs.k8s.io/json"
)

// faultyField is the path of the first field that the Rollout's type does not take, by
// decoding each one alone: the decoder names the fields of Go, and no index.
func faultyField(content map[string]any) (path string, err error) {
	// alone is the Rollout with nothing but one value in it.
	alone := func(value any) any { return value }
	var value any = content
	for {
		var found *piece
		for _, f := range fieldsOf(value) {
			rollout := alone(f.alone)
			if failed := decodes(rollout); failed != nil {
				found, err = &f, failed
				break
			}
		}
		if found == nil {
			return strings.TrimPrefix(path, "."), err
		}
		outer, in := alone, found.within
		alone = func(value any) any { return outer(in(value)) }
		path, value = path+found.step, found.value
		if failed := decodes(alone(emptied(value))); failed != nil {
			return strings.TrimPrefix(path, "."), failed // it is no list, or no object, at all
		}
	}
}

// emptied is a mapping or list with nothing in it; a text or number as it is.
func emptied(value any) any {
	switch value.(type) {
	case map[string]any:
		return map[string]any{}
	case []any:
		return []any{}
	}
	return value
}

// piece is one field of a mapping, or one entry of a list.
type piece struct {
	step   string
	value  any
	alone  any // what holds nothing but it
	within func(any) any
}

// fieldsOf are in order; none of a text or number.
func fieldsOf(value any) []piece {
	var fields []piece
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			within := func(value any) any { return map[string]any{name: value} }
			fields = append(fields, piece{below(name), value[name], within(value[name]), within})
		}
	case []any:
		within := func(value any) any { return []any{value} }
		for i, item := range value {
			fields = append(fields, piece{fmt.Sprintf("[%d]", i), item, within(item), within})
		}
	}
	return fields
}

func decodes(content any) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return kubejson.UnmarshalCaseSensitivePreserveInts(raw, &v1alpha1.Rollout{})
}

// standing is the decoder's word for what it found, wanted that for what a Go type
// takes.
func standing(value string) string {
	switch value {
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "number":
		return "a number"
	}
	return cut(value)
}

func wanted(t reflect.Type) string {
	switch kind := t.Kind(); kind {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return fmt.Sprintf("a whole number (%s)", kind)
	}
}
