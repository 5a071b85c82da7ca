package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Input is what is to be judged: objects, and what was found while reading them. The
// zero value is ready. It is not safe for concurrent use.
type Input struct {
	// Namespace is that of objects that do not name one, as after helm template; empty
	// is "default". It has to be set before the first Read.
	Namespace string

	objects  []*object
	places   map[key]int // in objects
	findings []Finding
	// doubles are findings about two objects with one name. They count only where a
	// Rollout is concerned: folders full of samples are nobody's mistake.
	doubles []double
}

type double struct {
	key
	finding Finding
}

// Objects is how many Kubernetes objects have been read.
func (in *Input) Objects() int { return len(in.objects) }

// Read takes in the YAML or JSON text of one file: any number of documents, each an
// object or a List of them. What cannot be read becomes a finding; the rest of the
// file counts all the same.
func (in *Input) Read(file string, data []byte) {
	text, err := textOf(data)
	if err != nil {
		in.unreadable(file, err)
		return
	}
	for _, d := range documents(text) {
		in.document(file, d)
	}
}

// Add takes in an object of a cluster, which has no file. The content must not be
// changed afterwards.
func (in *Input) Add(content map[string]any) {
	in.object("", content, nil)
}

func (in *Input) document(file string, d document) {
	root, err := d.parse()
	if err != nil || root == nil {
		in.unreadable(file, d.hinted(err))
		return
	}
	c := newConverter(len(d.text))
	value, err := c.value(root, 0)
	if err != nil {
		in.unreadable(file, d.hinted(err))
		return
	}
	for _, key := range c.repeated {
		in.add(twice, file, key.Line, "", key.Value, fmt.Sprintf("the field %q stands twice in one mapping: the last one counts for kubectl, and the API server refuses it", cut(key.Value)))
	}
	in.object(file, value, root)
}

// object takes in one object, or each item of a List.
func (in *Input) object(file string, value any, root *yaml.Node) {
	content, _ := value.(map[string]any)
	kind, _ := content["kind"].(string)
	version, _ := content["apiVersion"].(string)
	if items, list := content["items"].([]any); list && strings.HasSuffix(kind, "List") {
		for i, item := range items {
			in.object(file, item, itemOf(root, i))
		}
		return
	}
	if kind == "" || version == "" {
		in.add(noObject, file, lineOf(root, ""), "", "", "apiVersion and kind are missing: this is no Kubernetes object, and was not looked at")
		return
	}
	in.keep(newObject(file, content, root, in.Namespace))
}

func itemOf(root *yaml.Node, index int) *yaml.Node {
	if items, _ := childOf(root, "items"); items != nil && index < len(items.Content) {
		return items.Content[index]
	}
	return root
}

func childOf(root *yaml.Node, name string) (*yaml.Node, int) {
	root = resolved(root)
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, 0
	}
	found, line := member(root, name, 0)
	return resolved(found), line
}

// keep adds an object that checks look at. Of two with one name the last counts, as
// it does for kubectl apply.
func (in *Input) keep(o *object) {
	if !o.known() {
		return
	}
	if o.Name == "" {
		in.add(nameless, o.file, o.line("metadata"), o.String(), "metadata.name", "the object has no name, and was not looked at")
		return
	}
	if at, there := in.places[o.key]; there {
		message := "the object stands " + in.objects[at].place() + " as well; only the one here was looked at"
		in.doubles = append(in.doubles, double{o.key, sameName.finding(o.String(), o.file, o.line("metadata.name"), "metadata.name", message)})
		in.objects[at] = o
		return
	}
	if in.places == nil {
		in.places = map[key]int{}
	}
	in.places[o.key] = len(in.objects)
	in.objects = append(in.objects, o)
}

func (in *Input) unreadable(file string, err error) {
	var f fault
	if errors.As(err, &f) {
		in.add(unreadable, file, f.line, "", "", f.message)
	}
}

// add notes a finding that no check of Rollouts makes.
func (in *Input) add(c *Check, file string, line int, object, field, message string) {
	in.findings = append(in.findings, c.finding(object, file, line, field, message))
}

// Annotations are the values of one annotation over all objects, each once.
func (in *Input) Annotations(name string) []string {
	var values []string
	for _, o := range in.objects {
		if value := o.labels("metadata", "annotations")[name]; value != "" && !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}
