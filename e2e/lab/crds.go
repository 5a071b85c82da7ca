package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	// Keeps istio.io/api in go.mod: its folder holds the definitions.
	_ "istio.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	istioModule = "istio.io/api"
	istioGroup  = "networking.istio.io"
)

// istioKinds are the definitions the lab takes of Istio's. The others would
// only make each start longer.
var istioKinds = []string{
	"virtualservices.networking.istio.io",
	"destinationrules.networking.istio.io",
	"serviceentries.networking.istio.io",
}

// looseKinds are definitions that a controller must find but that no plugin has
// to do with. They repeat the schema of a pod in many places; storing them as
// they are would take half of a lab's start.
var looseKinds = []string{
	"analysisruns.argoproj.io",
	"analysistemplates.argoproj.io",
	"clusteranalysistemplates.argoproj.io",
	"experiments.argoproj.io",
}

// definitionsOf are what the lab installs: those of a release of Argo Rollouts and
// Istio's. Reading takes a second, so each release's are read once in a process.
func definitionsOf(ctx context.Context, options Options) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	definitionsRead.Lock()
	defer definitionsRead.Unlock()
	list, ok := definitionsRead.of[options.RolloutsVersion]
	if !ok {
		var err error
		if list, err = readAllDefinitions(ctx, options.RolloutsVersion); err != nil {
			return nil, err
		}
		definitionsRead.of[options.RolloutsVersion] = list
	}
	copies := make([]*apiextensionsv1.CustomResourceDefinition, len(list))
	for i, crd := range list {
		copies[i] = crd.DeepCopy() // envtest writes into what it is given
		if crd.Spec.Group == istioGroup && options.IstioVersion != "" {
			if err := keepVersion(copies[i], options.IstioVersion); err != nil {
				return nil, err
			}
		}
	}
	return copies, nil
}

var definitionsRead = struct {
	sync.Mutex
	of map[string][]*apiextensionsv1.CustomResourceDefinition // by release, as in Options
}{of: map[string][]*apiextensionsv1.CustomResourceDefinition{}}

// keepVersion leaves a definition with one version, which is then the stored one.
func keepVersion(crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	versions := crd.Spec.Versions
	at := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if at < 0 {
		return fmt.Errorf("%s has no version %q", crd.Name, version)
	}
	crd.Spec.Versions = versions[at : at+1]
	crd.Spec.Versions[0].Served, crd.Spec.Versions[0].Storage = true, true
	return nil
}

func readAllDefinitions(ctx context.Context, release string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	rollouts, err := rolloutsFolder(ctx, release)
	if err != nil {
		return nil, err
	}
	istio, err := requiredFolder(ctx, istioModule)
	if err != nil {
		return nil, err
	}
	wanted := append([]string{"rollouts.argoproj.io"}, looseKinds...)
	found, err := readDefinitions(filepath.Join(rollouts, "manifests", "crds", "*-crd.yaml"), wanted)
	if err != nil {
		return nil, err
	}
	more, err := readDefinitions(filepath.Join(istio, "kubernetes", "customresourcedefinitions.gen.yaml"), istioKinds)
	if err != nil {
		return nil, err
	}
	found = append(found, more...)
	for _, crd := range found {
		lighten(crd)
	}
	return found, nil
}

// readDefinitions reads the definitions wanted from the files that match a pattern.
func readDefinitions(pattern string, wanted []string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
			if !names(document, wanted) {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(document, crd); err != nil {
				return nil, fmt.Errorf("definition in %s: %w", file, err)
			}
			found = append(found, crd)
		}
	}
	if len(found) != len(wanted) {
		return nil, fmt.Errorf("%s has %d of the definitions %v", pattern, len(found), wanted)
	}
	return found, nil
}

// names looks for the metadata of a wanted definition in the text: decoding
// takes long, and most of Istio's are not wanted.
func names(document []byte, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(name string) bool {
		return bytes.Contains(document, []byte("\n  name: "+name+"\n"))
	})
}

// lighten takes out what only costs time: texts for people, and the schemas of
// loose kinds. What is left is checked and pruned as in any cluster.
func lighten(crd *apiextensionsv1.CustomResourceDefinition) {
	loose := slices.Contains(looseKinds, crd.Name)
	for i := range crd.Spec.Versions {
		schema := crd.Spec.Versions[i].Schema
		if loose {
			keep := true
			schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
			continue
		}
		withoutTexts(schema.OpenAPIV3Schema)
	}
}

// withoutTexts removes the descriptions from a schema and all below it.
func withoutTexts(schema *apiextensionsv1.JSONSchemaProps) {
	if schema == nil {
		return
	}
	schema.Description = ""
	for name, property := range schema.Properties {
		withoutTexts(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		withoutTexts(schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil {
		withoutTexts(schema.AdditionalProperties.Schema)
	}
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{schema.AllOf, schema.AnyOf, schema.OneOf} {
		for i := range list {
			withoutTexts(&list[i])
		}
	}
	withoutTexts(schema.Not)
}

// requiredFolder is the source of a module at the version that e2e/go.mod requires.
func requiredFolder(ctx context.Context, module string) (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	version, err := requiredVersion(dir, module)
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, dir, module, version)
}

// rolloutsFolder is the source of a release of Argo Rollouts, or, when that is "",
// of the one that e2e/go.mod requires.
func rolloutsFolder(ctx context.Context, release string) (string, error) {
	if release == "" {
		return requiredFolder(ctx, rolloutsModule)
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	return moduleFolder(ctx, Rollouts(release).source(dir), rolloutsModule, release)
}
