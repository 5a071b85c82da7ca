package lint

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// groupKind names a kind whatever its version.
type groupKind struct{ group, kind string }

// The kinds that are looked at. All others are passed over.
var (
	rolloutKind         = groupKind{"argoproj.io", "Rollout"}
	virtualServiceKind  = groupKind{"networking.istio.io", "VirtualService"}
	destinationRuleKind = groupKind{"networking.istio.io", "DestinationRule"}
	serviceEntryKind    = groupKind{"networking.istio.io", "ServiceEntry"}
	httpRouteKind       = groupKind{"gateway.networking.k8s.io", "HTTPRoute"}
	serviceKind         = groupKind{"", "Service"}
	namespaceKind       = groupKind{"", "Namespace"}
	deploymentKind      = groupKind{"apps", "Deployment"}
	autoscalerKind      = groupKind{"autoscaling", "HorizontalPodAutoscaler"}
	scaledObjectKind    = groupKind{"keda.sh", "ScaledObject"}
	applicationKind     = groupKind{"argoproj.io", "Application"}
	applicationSetKind  = groupKind{"argoproj.io", "ApplicationSet"}
	helmReleaseKind     = groupKind{"helm.toolkit.fluxcd.io", "HelmRelease"}
)

// key tells objects apart.
type key struct {
	groupKind
	Namespace, Name string
}

// object is one object of the input.
type object struct {
	key
	file    string
	content map[string]any
	root    *yaml.Node // nil for objects of a cluster
}

// newObject reads which object it is. One without a namespace gets the given one, as
// it would from kubectl.
func newObject(file string, content map[string]any, root *yaml.Node, namespace string) *object {
	o := &object{file: file, content: content, root: root}
	version, _ := content["apiVersion"].(string)
	if group, _, found := strings.Cut(version, "/"); found {
		o.group = group
	}
	o.kind, _ = content["kind"].(string)
	o.Name, o.Namespace = o.text("metadata", "name"), o.text("metadata", "namespace")
	given := o.at("metadata", "namespace")
	if (given == nil || given == "") && o.groupKind != namespaceKind {
		if o.Namespace = namespace; namespace == "" {
			o.Namespace = "default"
		}
		o.content = withNamespace(content, o.Namespace)
	}
	return o
}

// withNamespace is a copy of the two levels that differ.
func withNamespace(content map[string]any, namespace string) map[string]any {
	metadata := map[string]any{}
	old, ok := content["metadata"].(map[string]any)
	if !ok && content["metadata"] != nil {
		return content // malformed, which is reported where it matters
	}
	for name, value := range old {
		metadata[name] = value
	}
	metadata["namespace"] = namespace
	out := map[string]any{}
	for name, value := range content {
		out[name] = value
	}
	out["metadata"] = metadata
	return out
}

// String is "Kind namespace/name", as far as there is that.
func (o *object) String() string {
	switch {
	case o.Name == "":
		return o.kind
	case o.Namespace == "":
		return o.kind + " " + o.Name
	}
	return fmt.Sprintf("%s %s/%s", o.kind, o.Namespace, o.Name)
}

// place is where the object stands, for a message about another one.
func (o *object) place() string {
	if o.file == "" {
		return "in the cluster"
	}
	return fmt.Sprintf("in %s:%d", o.file, o.line(""))
}

// line is where a field stands; 0 for an object of a cluster.
func (o *object) line(field string) int {
	if o.root == nil {
		return 0
	}
	return lineOf(o.root, field)
}

// live tells an object that an API server has had: what the controller or the plugin
// write into it is no mistake then.
func (o *object) live() bool {
	return o.text("metadata", "uid") != "" || o.text("metadata", "resourceVersion") != ""
}

func (o *object) unstructured() *metav1.Unstructured { return &metav1.Unstructured{Object: o.content} }

// at is the value at a path of names; nil where there is none.
func (o *object) at(path ...string) any { return at(o.content, path...) }

func at(value any, path ...string) any {
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

func (o *object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

// list are the entries of a list; none where there is no list.
func (o *object) list(path ...string) []any {
	list, _ := o.at(path...).([]any)
	return list
}

func (o *object) texts(path ...string) []string { return textsOf(o.at(path...)) }

func textsOf(value any) []string {
	var texts []string
	list, _ := value.([]any)
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// labels is a mapping of texts; nil where there is none.
func (o *object) labels(path ...string) map[string]string { return labelsOf(o.at(path...)) }

func labelsOf(value any) map[string]string {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	labels := map[string]string{}
	for name, field := range fields {
		if text, ok := field.(string); ok {
			labels[name] = text
		}
	}
	return labels
}
