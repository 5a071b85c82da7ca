package object

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Node is one place in the content of an object. The zero value is an absent
// place. Nodes are values and safe for concurrent use as long as nobody writes to
// the content, which for objects of an informer's cache is the rule.
type Node struct {
	up    *Node
	name  string // of the field; empty for an entry of a list
	index int    // of the entry; only where name is empty
	value any    // nil when the place is absent or null
}

// Root is the whole content of an object.
func Root(content map[string]any) Node {
	if content == nil {
		return Node{}
	}
	return Node{value: content}
}

// Field is the field of that name. It is absent where n is absent, where n has no
// such field, and where n is no object at all: that n has the wrong type is
// reported by whoever reads n itself.
func (n Node) Field(name string) Node {
	fields, _ := n.value.(map[string]any)
	return Node{up: &n, name: name, value: fields[name]}
}

// Absent tells whether there is nothing at this place, or null.
func (n Node) Absent() bool {
	return n.value == nil
}

// Path names the place as in "spec.http[0].route[1].weight"; the root is "object".
func (n Node) Path() string {
	switch {
	case n.up == nil:
		return "object"
	case n.name == "":
		return n.up.Path() + "[" + strconv.Itoa(n.index) + "]"
	case n.up.up == nil:
		return n.name
	}
	return n.up.Path() + "." + n.name
}

// Object is an error unless the place holds an object or nothing.
func (n Node) Object() error {
	if _, ok := n.value.(map[string]any); !ok && !n.Absent() {
		return n.Wrong("an object")
	}
	return nil
}

// Items are the entries of a list, in order; an entry may itself be absent (null).
func (n Node) Items() ([]Node, error) {
	list, ok := n.value.([]any)
	if !ok && !n.Absent() {
		return nil, n.Wrong("a list")
	}
	items := make([]Node, len(list))
	for i := range list {
		items[i] = Node{up: &n, index: i, value: list[i]}
	}
	return items, nil
}

// Text is a string, empty when absent.
func (n Node) Text() (string, error) {
	text, ok := n.value.(string)
	if !ok && !n.Absent() {
		return "", n.Wrong("text")
	}
	return text, nil
}

// Texts is a list of strings; entries that are null are an error.
func (n Node) Texts() ([]string, error) {
	items, err := n.Items()
	if err != nil || len(items) == 0 {
		return nil, err
	}
	texts := make([]string, len(items))
	for i, item := range items {
		text, ok := item.value.(string)
		if !ok {
			return nil, item.Wrong("text")
		}
		texts[i] = text
	}
	return texts, nil
}

// Labels is an object whose values are all strings, as a new map; nil when absent,
// and not nil when it is there but empty.
func (n Node) Labels() (map[string]string, error) {
	fields, ok := n.value.(map[string]any)
	if !ok {
		return nil, n.Object()
	}
	labels := make(map[string]string, len(fields))
	for _, key := range slices.Sorted(maps.Keys(fields)) { // the same error every time
		value := n.Field(key)
		text, ok := value.value.(string)
		if !ok {
			return nil, value.Wrong("text")
		}
		labels[key] = text
	}
	return labels, nil
}

// Integer is a whole number, 0 when absent. A number that was decoded as a float
// counts as long as it is whole and fits: the decoder decides which of the two a
// 30 becomes, not the user.
func (n Node) Integer() (int64, error) {
	switch number := n.value.(type) {
	case nil:
		return 0, nil
	case int64:
		return number, nil
	case int:
		return int64(number), nil
	case float64:
		// -2^63 is a float, 2^63-1 is not: the upper bound must exclude 2^63.
		if number == math.Trunc(number) && number >= math.MinInt64 && number < -math.MinInt64 {
			return int64(number), nil
		}
	}
	return 0, n.Wrong("an integer")
}

// Wrong says that the place does not hold what was wanted ("an integer").
func (n Node) Wrong(wanted string) error {
	return fmt.Errorf("%s: want %s, found %s", n.Path(), wanted, found(n.value))
}

// found names a type as a user of YAML would, and leaves the value out: it may be
// long, or a secret in the wrong place.
func found(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	case float64:
		return "a fraction or a number out of range"
	case int64, int:
		return "an integer"
	}
	return fmt.Sprintf("a %T", value)
}
