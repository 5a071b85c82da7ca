package istio

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/config/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is a Kubernetes object as far as its validation needs it.
type Object struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// String names the object: Kind namespace/name.
func (o Object) String() string {
	return fmt.Sprintf("%s %s/%s", o.Kind, o.Metadata.Namespace, o.Metadata.Name)
}

// kind is how Istio reads and judges one kind of object.
type kind struct {
	gvk      config.GroupVersionKind
	empty    func() config.Spec
	validate validation.ValidateFunc
}

// kinds are those that the plugin writes. All versions of a kind have the same
// schema, and istiod looks them up without it.
var kinds = map[schema.GroupKind]kind{
	{Group: gvk.VirtualService.Group, Kind: gvk.VirtualService.Kind}: {
		gvk.VirtualService, func() config.Spec { return &networking.VirtualService{} }, validation.ValidateVirtualService,
	},
	{Group: gvk.DestinationRule.Group, Kind: gvk.DestinationRule.Kind}: {
		gvk.DestinationRule, func() config.Spec { return &networking.DestinationRule{} }, validation.ValidateDestinationRule,
	},
}

// ErrNotJudged is the error for what is not a VirtualService or DestinationRule
// in JSON at all. The caller has to look at where the text came from.
var ErrNotJudged = errors.New("neither a VirtualService nor a DestinationRule of networking.istio.io")

// Validate returns Istio's verdict on one object in JSON: nil when istiod's
// webhook lets it pass. warnings are what people should look at, and fields that
// this version of Istio does not know, which it ignores. An error that is
// [ErrNotJudged] is no verdict.
func Validate(object []byte) (warnings []string, err error) {
	o, err := decode(object)
	if err != nil {
		return nil, err
	}
	return o.validate()
}

func decode(object []byte) (Object, error) {
	var o Object
	if err := json.Unmarshal(object, &o); err != nil {
		return o, fmt.Errorf("%w: %w", ErrNotJudged, err)
	}
	if _, known := kinds[o.groupKind()]; !known {
		return o, fmt.Errorf("%w: apiVersion %q, kind %q", ErrNotJudged, o.APIVersion, o.Kind)
	}
	return o, nil
}

func (o Object) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
}

func (o Object) validate() (warnings []string, err error) {
	kind := kinds[o.groupKind()]
	spec := kind.empty()
	text := string(o.Spec)
	if text == "" {
		text = "{}"
	}
	if err := config.ApplyJSON(spec, text); err != nil {
		return nil, fmt.Errorf("spec cannot be read: %w", err)
	}
	if err := config.ApplyJSONStrict(kind.empty(), text); err != nil {
		warnings = append(warnings, fmt.Sprintf("ignored by Istio: %v", err))
	}
	warning, err := kind.validate(config.Config{
		Meta: config.Meta{
			GroupVersionKind: kind.gvk, Name: o.Metadata.Name, Namespace: o.Metadata.Namespace,
			Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations,
		},
		Spec: spec,
	})
	return append(warnings, texts(warning)...), err
}

// texts are the single messages of what Istio joins into one error.
func texts(warning error) []string {
	if warning == nil {
		return nil
	}
	var several *multierror.Error
	if !errors.As(warning, &several) {
		return []string{warning.Error()}
	}
	var out []string
	for _, one := range several.Errors {
		out = append(out, one.Error())
	}
	return out
}
