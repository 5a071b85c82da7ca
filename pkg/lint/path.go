package lint

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// step is one part of a field path: a field's name, or an index of a list.
type step struct {
	name  string
	index int // -1 where it is a name
}

// stepsOf takes a path apart as field.Path and package object write it:
// spec.http[0].route, plugins["argoproj-labs/istio"].guard, annotations[a.b/c].
func stepsOf(path string) []step {
	var steps []step
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			var s step
			s, path = bracket(path)
			steps = append(steps, s)
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			steps = append(steps, step{name: path[:end], index: -1})
			path = path[end:]
		}
	}
	return steps
}

// bracket takes [3], [key] or ["key"] from the front.
func bracket(path string) (step, string) {
	inner := path[1:]
	if quoted, err := strconv.QuotedPrefix(inner); err == nil {
		key, _ := strconv.Unquote(quoted)
		return step{name: key, index: -1}, strings.TrimPrefix(inner[len(quoted):], "]")
	}
	text, rest, _ := strings.Cut(inner, "]")
	if index, err := strconv.Atoi(text); err == nil && index >= 0 {
		return step{index: index}, rest
	}
	return step{name: text, index: -1}, rest
}

// lineOf is the line of the field, or of the last part of its path that is there.
func lineOf(root *yaml.Node, path string) int {
	node := resolved(root)
	if node == nil {
		return 0
	}
	line := node.Line
	for _, s := range stepsOf(path) {
		var at int
		if node, at = child(node, s); node == nil {
			break
		}
		line = at
		node = resolved(node)
	}
	return line
}

// child is the value of one step, and the line to show for it: that of the name
// where there is one.
func child(node *yaml.Node, s step) (*yaml.Node, int) {
	switch {
	case node.Kind == yaml.SequenceNode && s.index >= 0 && s.index < len(node.Content):
		return node.Content[s.index], node.Content[s.index].Line
	case node.Kind == yaml.MappingNode && s.index < 0:
		return member(node, s.name, 0)
	}
	return nil, 0
}

// member finds a field. The last of a name counts, as for kubectl; those of a merged
// mapping come after all others.
func member(node *yaml.Node, name string, merges int) (*yaml.Node, int) {
	for i := len(node.Content) - 2; i >= 0; i -= 2 {
		if key := node.Content[i]; key.Value == name {
			return node.Content[i+1], key.Line
		}
	}
	for i := 0; i+1 < len(node.Content) && merges < maxMerges; i += 2 {
		merged := resolved(node.Content[i+1])
		if isMerge(node.Content[i]) && merged != nil && merged.Kind == yaml.MappingNode {
			if found, line := member(merged, name, merges+1); found != nil {
				return found, line
			}
		}
	}
	return nil, 0
}

// maxMerges bounds how deep a merged mapping may itself merge another.
const maxMerges = 20

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Style == 0 && key.Value == "<<"
}

// resolved follows aliases; nil where there is nothing.
func resolved(node *yaml.Node) *yaml.Node {
	for hops := 0; node != nil && node.Kind == yaml.AliasNode && hops < maxMerges; hops++ {
		node = node.Alias
	}
	if node != nil && node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		return resolved(node.Content[0])
	}
	return node
}
