package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	// Keeps istio.io/api in go.mod: its folder holds the definitions.
	_ "istio.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const istioModule = "istio.io/api"

// istioKinds are the definitions the lab takes of Istio's. The others would
// only make each start longer.
var istioKinds = []string{
	"virtualservices.networking.istio.io",
	"destinationrules.networking.istio.io",
	"serviceentries.networking.istio.io",
}

// rolloutsCRDs is the folder with the definitions of the release of Argo
// Rollouts that the e2e module requires. Older controllers work with them too.
func rolloutsCRDs(ctx context.Context) (string, error) {
	folder, err := requiredFolder(ctx, rolloutsModule)
	return filepath.Join(folder, "manifests", "crds"), err
}

// istioCRDs reads the definitions, with every version that Istio serves.
func istioCRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	folder, err := requiredFolder(ctx, istioModule)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(folder, "kubernetes", "customresourcedefinitions.gen.yaml")
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var found []*apiextensionsv1.CustomResourceDefinition
	for document := range bytes.SplitSeq(content, []byte("\n---\n")) {
		for _, kind := range istioKinds {
			// Decoding takes long; a look at the text spares that of the others.
			if !bytes.Contains(document, []byte("\n  name: "+kind+"\n")) {
				continue
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(document, crd); err != nil {
				return nil, fmt.Errorf("%s in %s: %w", kind, name, err)
			}
			found = append(found, crd)
		}
	}
	if len(found) != len(istioKinds) {
		return nil, fmt.Errorf("%s has %d of the definitions %v", name, len(found), istioKinds)
	}
	return found, nil
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
