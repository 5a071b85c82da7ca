package examples

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// rightsPrefix is what the names of the roles in install/rights.yaml begin with;
// what follows is the part.
const rightsPrefix = "rollouts-plugin-trafficrouter-istio-"

// right is one verb on one resource of one API group, as a rule has it.
type right struct{ group, resource, verb string }

func (r right) String() string {
	return strings.TrimSuffix(r.resource+"."+r.group, ".") + " " + r.verb
}

// rightsOf are the rights of rules that name no single objects.
func rightsOf(rules []rbacv1.PolicyRule) map[right]bool {
	out := map[right]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out[right{group, resource, verb}] = true
				}
			}
		}
	}
	return out
}

// usedRights are those of install/rights.yaml, by part.
func usedRights() (map[string]map[right]bool, error) {
	content, err := os.ReadFile(file("install/rights.yaml"))
	if err != nil {
		return nil, err
	}
	parts := map[string]map[right]bool{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		role := rbacv1.ClusterRole{}
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return parts, nil
		} else if err != nil {
			return nil, fmt.Errorf("install/rights.yaml: %w", err)
		}
		part, named := strings.CutPrefix(role.Name, rightsPrefix)
		if !named || parts[part] != nil || len(role.Rules) == 0 {
			return nil, fmt.Errorf("install/rights.yaml: %q is no name of a part, is there twice, or has no rules", role.Name)
		}
		parts[part] = rightsOf(role.Rules)
	}
}

// notAsked tells of rights that nothing here need make use of. An API server of today
// begins a watch with what a list would have; older ones are asked for the list, and so
// is each after a refusal. After a conflict an object is got. Secrets are read for a mesh
// in another cluster alone. Package apiserver tests all of these.
func notAsked(r right) bool {
	return r.verb == "list" || r.resource == "secrets" || r.group == "networking.istio.io" && r.verb == "get"
}

// wholeRun tells that no test was left out.
func wholeRun() bool {
	for _, name := range []string{"test.run", "test.skip"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// checkRequests holds all that the plugins of this run have asked the API server for
// against install/rights.yaml: nothing else, and, where all tests have run, all of
// it.
func checkRequests(whole bool) error {
	parts, err := usedRights()
	if err != nil {
		return err
	}
	granted := map[right]bool{}
	for _, rights := range parts {
		maps.Copy(granted, rights)
	}
	asked := map[right]bool{}
	_, err = shared.Requests(func(r lab.Request) bool {
		// Without a resource it is the version, or which versions of Istio's kinds are served.
		if r.Resource != "" && strings.HasPrefix(r.UserAgent, "rollouts-plugin-trafficrouter-istio/") {
			asked[right{r.APIGroup, strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/"), r.Verb}] = true
		}
		return false
	})
	if err != nil {
		return err
	}
	var errs []error
	for r := range asked {
		if !granted[r] {
			errs = append(errs, fmt.Errorf("the plugin asked for %s, which install/rights.yaml and docs/rbac.md do not have", r))
		}
	}
	for r := range granted {
		if whole && !asked[r] && !notAsked(r) {
			errs = append(errs, fmt.Errorf("nothing has asked for %s, which install/rights.yaml and docs/rbac.md have", r))
		}
	}
	return errors.Join(errs...)
}
