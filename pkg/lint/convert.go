package lint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kubeyaml "sigs.k8s.io/yaml"
)

// maxDepth bounds nesting; the deepest field of a pod template lies at about 15.
const maxDepth = 100

// converter makes of a document what kubectl would send: the content as JSON has it.
// The parser's own way to do so reads plain scalars by YAML 1.2, kubectl by 1.1,
// where a bare off is a boolean.
type converter struct {
	// left is how many values may still come. Aliases are expanded, and a few lines of
	// them can stand for more than fits into memory.
	left     int
	scalars  map[string]any
	repeated []*yaml.Node // names that stand twice in one mapping
}

func newConverter(bytes int) *converter {
	return &converter{left: bytes + 100_000, scalars: map[string]any{}}
}

func (c *converter) value(node *yaml.Node, depth int) (any, error) {
	if c.left--; c.left < 0 {
		return nil, fault{node.Line, "aliases (*name) expand to more than can be read: write the values out"}
	}
	if depth > maxDepth {
		return nil, fault{node.Line, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	switch node.Kind {
	case yaml.AliasNode:
		if node.Alias == nil {
			return nil, fault{node.Line, "an alias of nothing"}
		}
		value, err := c.value(node.Alias, depth+1)
		var f fault
		if errors.As(err, &f) && c.left < 0 {
			return nil, fault{node.Line, f.message} // the outermost alias is to blame
		}
		return value, err
	case yaml.MappingNode:
		return c.mapping(node, depth)
	case yaml.SequenceNode:
		return c.sequence(node, depth)
	}
	return c.scalar(node)
}

func (c *converter) sequence(node *yaml.Node, depth int) (any, error) {
	items := make([]any, len(node.Content))
	for i, item := range node.Content {
		value, err := c.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		items[i] = value
	}
	return items, nil
}

func (c *converter) mapping(node *yaml.Node, depth int) (any, error) {
	fields := make(map[string]any, len(node.Content)/2)
	merged := map[string]any{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		value, err := c.value(node.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if isMerge(key) {
			merge(merged, value)
			continue
		}
		name, err := c.name(key)
		if err != nil {
			return nil, err
		}
		if _, twice := fields[name]; twice {
			c.repeated = append(c.repeated, key)
		}
		fields[name] = value
	}
	for name, value := range merged {
		if _, own := fields[name]; !own {
			fields[name] = value
		}
	}
	return fields, nil
}

// merge takes in what "<<" stands for: a mapping, or a list of them of which the
// first counts most.
func merge(into map[string]any, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if _, there := into[name]; !there {
				into[name] = field
			}
		}
	case []any:
		for _, item := range value {
			if fields, ok := item.(map[string]any); ok {
				merge(into, fields)
			}
		}
	}
}

// name is a field's name. One that is no text to YAML is written as JSON has it.
func (c *converter) name(key *yaml.Node) (string, error) {
	target := resolved(key)
	if target == nil || target.Kind != yaml.ScalarNode {
		return "", fault{key.Line, "a field's name must be a text"}
	}
	value, err := c.scalar(target)
	if err != nil {
		return "", err
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	return fmt.Sprint(value), nil
}

// scalar reads one value as kubectl's own library does, which is asked wherever it
// is not plainly a text.
func (c *converter) scalar(node *yaml.Node) (any, error) {
	quoted := node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	tagged := node.Style&yaml.TaggedStyle != 0
	if node.Kind != yaml.ScalarNode || (quoted || node.Tag == "!!str" && tagged) && node.Tag != "!!binary" || !tagged && plainText(node.Value) {
		return node.Value, nil
	}
	text := node.Value
	if text == "" && !tagged {
		return nil, nil
	}
	if tagged {
		text = node.Tag + " " + strconv.Quote(node.Value)
	}
	if known, found := c.scalars[text]; found {
		return known, nil
	}
	value, err := kubeScalar(text)
	if err != nil {
		return nil, fault{node.Line, fmt.Sprintf("%q cannot be read: %s", cut(node.Value), cut(err.Error()))}
	}
	c.scalars[text] = value
	return value, nil
}

// words are what YAML 1.1 does not take for a text, in whatever case.
var words = []string{"y", "yes", "n", "no", "true", "false", "on", "off", "null"}

// plainText tells a plain scalar that no version of YAML takes for anything else.
func plainText(text string) bool {
	if text == "" {
		return false
	}
	switch first := text[0]; {
	case 'a' <= first && first <= 'z' || 'A' <= first && first <= 'Z':
		return !slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, text) })
	case strings.IndexByte("+-.0123456789~<=", first) < 0:
		return true
	}
	const longest = 40 // of numbers and times
	return len(text) > longest || strings.ContainsAny(text, "\n\"{}[]#&*!|>'%@`")
}

func kubeScalar(text string) (any, error) {
	raw, err := kubeyaml.YAMLToJSON([]byte("[" + text + "]"))
	if err != nil {
		return nil, err
	}
	var list []any
	if err := utiljson.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return text, nil // a comma in a plain text, which is no list here
	}
	return list[0], nil
}

// cut shortens what is shown of a value.
func cut(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
