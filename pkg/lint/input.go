package lint

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
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
	// Command is how a person calls the program, for the texts that show a command; empty
	// is the binary's name. It has to be set before the first Read.
	Command string

	objects  []*object
	places   map[key]int // in objects
	findings []Finding
	notes    []string
	// doubles are findings about two objects with one name. They count only where a
	// Rollout is concerned: folders full of samples are nobody's mistake.
	doubles []double
}

type double struct {
	key
	finding Finding
	// note stands in for the finding where nothing is lost: the contents are equal.
	note string
}

// Read takes in the YAML or JSON text of one file: any number of documents, each an
// object or a List of them. What cannot be read becomes a finding; the rest of the
// file counts all the same.
func (in *Input) Read(file string, data []byte) {
	text, err := textOf(data)
	if err != nil {
		in.unreadable(file, data, err)
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

// Note takes in what the caller could not read; it stands among the report's notes.
func (in *Input) Note(text string) { in.notes = append(in.notes, text) }

func (in *Input) document(file string, d document) {
	root, err := d.parse()
	if err != nil || root == nil {
		in.unreadable(file, d.text, d.hinted(err, in.command()))
		return
	}
	c := newConverter(len(d.text))
	value, err := c.value(root, 0)
	if err != nil {
		in.unreadable(file, d.text, d.hinted(err, in.command()))
		return
	}
	if _, is := at(value, "kind").(string); is {
		for _, key := range c.repeated {
			in.add(twice, file, key.Line, "", key.Value, fmt.Sprintf("the field %q stands twice in one mapping", cut(key.Value)))
		}
	}
	in.object(file, value, root)
}

func (in *Input) command() string {
	if in.Command == "" {
		return "rollouts-plugin-trafficrouter-istio"
	}
	return in.Command
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
	switch items, list := value.([]any); {
	case list && slices.ContainsFunc(items, isObject):
		in.add(unreadable, file, lineOf(root, ""), "", "", "this is a list, which kubectl does not take, and was not looked at: wrap it in kind: List (apiVersion: v1, the list under items)")
	case kind == "" || version == "":
		in.add(noObject, file, lineOf(root, ""), "", "", noObjectReason(value))
	default:
		in.keep(newObject(file, content, root, in.Namespace))
	}
}

func isObject(value any) bool {
	return at(value, "apiVersion") != nil && at(value, "kind") != nil
}

// noObjectReason tells a field that is missing from one that YAML takes for a number.
func noObjectReason(value any) string {
	var missing []string
	for _, name := range []string{"apiVersion", "kind"} {
		switch found := at(value, name); {
		case found == nil || found == "":
			missing = append(missing, name)
		case !isText(found):
			return fmt.Sprintf("%s is %s, which is no text: this is no Kubernetes object, and was not looked at", name, shown(found))
		}
	}
	if len(missing) == 1 {
		return missing[0] + " is missing: this is no Kubernetes object, and was not looked at"
	}
	return "apiVersion and kind are missing: this is no Kubernetes object, and was not looked at"
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

// shown is a value as a message may show it: nothing of a list or an object.
func shown(value any) string {
	switch value.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return cut(fmt.Sprint(value))
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

// keep adds an object that checks look at.
func (in *Input) keep(o *object) {
	if field, message := versionError(o); message != "" {
		in.add(unserved, o.file, o.line(field), o.String(), field, message)
	}
	if !o.known() {
		return
	}
	for _, field := range []string{"name", "namespace"} {
		if found := o.at("metadata", field); found != nil && !isText(found) {
			in.add(nameless, o.file, o.line("metadata."+field), o.String(), "metadata."+field, "metadata."+field+" is "+shown(found)+", which is no text; the object was not looked at")
			return
		}
	}
	if o.Name == "" {
		in.add(nameless, o.file, o.line("metadata"), o.String(), "metadata.name", "the object has no name, and was not looked at")
		return
	}
	if at, there := in.places[o.key]; there {
		in.objects[at] = in.choose(in.objects[at], o)
		return
	}
	if in.places == nil {
		in.places = map[key]int{}
	}
	in.places[o.key] = len(in.objects)
	in.objects = append(in.objects, o)
}

// choose takes one of two objects with one name and notes the other. The last counts,
// as it does for kubectl apply; but a patch, as it lies in a tree of Kustomize, is
// never the Rollout that it changes.
func (in *Input) choose(before, o *object) *object {
	d := double{key: o.key}
	chosen := o
	switch {
	case reflect.DeepEqual(before.content, o.content):
		d.note = fmt.Sprintf("%s stands %s and %s, with the same content", o, before.place(), o.place())
	case isPatch(o) && !isPatch(before):
		chosen = before
		d.finding = in.double(o, "the object stands "+before.place()+" as well; only the one there was looked at: this one has no spec.strategy, as a patch")
	case isPatch(before) && !isPatch(o):
		d.finding = in.double(o, "the object stands "+before.place()+" as well, without spec.strategy, as a patch; only the one here was looked at")
	default:
		d.finding = in.double(o, "the object stands "+before.place()+" as well, with another content; only the one here was looked at")
	}
	in.doubles = append(in.doubles, d)
	return chosen
}

func (in *Input) double(o *object, message string) Finding {
	return sameName.finding(o.String(), o.file, o.line("metadata.name"), "metadata.name", message)
}

// isPatch tells a Rollout that the controller would not take.
func isPatch(o *object) bool {
	return o.groupKind == rolloutKind && o.at("spec", "strategy") == nil
}

// unreadable notes what cannot be read. A JSON file that names no kind, as those of
// other programs, is none of ours.
func (in *Input) unreadable(file string, text []byte, err error) {
	var f fault
	switch {
	case !errors.As(err, &f):
	case strings.HasSuffix(strings.ToLower(file), ".json") && !bytes.Contains(text, []byte(`"kind"`)):
		in.add(noObject, file, f.line, "", "", f.message+"; it names no kind, and was not looked at")
	default:
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
