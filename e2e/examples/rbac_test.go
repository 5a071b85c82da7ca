package examples

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// table is the cells of the table in docs/rbac.md whose first column has this title.
func table(t *testing.T, title string) [][]string {
	t.Helper()
	content, err := os.ReadFile("../../docs/rbac.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(content), "\n| "+title+" |")
	if !found {
		t.Fatalf("docs/rbac.md has no table with a column %s", title)
	}
	var rows [][]string
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// stockRights are those of Argo Rollouts' own role.
func stockRights(t *testing.T, version string) map[right]bool {
	t.Helper()
	role, err := lab.ClusterRole(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	return rightsOf(role.Rules)
}

func mustUsedRights(t *testing.T) map[string]map[right]bool {
	t.Helper()
	parts, err := usedRights()
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

func TestTheTableOfWhatIsUsedIsTheRightsFile(t *testing.T) {
	t.Parallel()
	documented := map[string]map[right]bool{}
	for _, row := range table(t, "Part") {
		part, group, resource := strings.Trim(row[0], "`"), strings.Trim(row[1], "`"), strings.Trim(row[2], "`")
		if documented[part] == nil {
			documented[part] = map[right]bool{}
		}
		for _, verb := range strings.Split(row[3], ", ") {
			documented[part][right{group, resource, verb}] = true
		}
	}
	if diff := cmp.Diff(mustUsedRights(t), documented, cmp.AllowUnexported(right{})); diff != "" {
		t.Errorf("rights (-install/rights.yaml +docs/rbac.md):\n%s", diff)
	}
}

// The oldest and the newest release that the tests run.
func TestTheTableTellsWhatTheRoleOfArgoRolloutsHas(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1.8.5", lab.DefaultVersion} {
		stock := stockRights(t, version)
		for _, row := range table(t, "Part") {
			has := true
			for _, verb := range strings.Split(row[3], ", ") {
				has = has && stock[right{strings.Trim(row[1], "`"), strings.Trim(row[2], "`"), verb}]
			}
			want := map[bool]string{true: "yes", false: "no"}[has]
			if said := row[len(row)-1]; said != want && !(said == "other cluster" && row[0] == "`mesh-cluster`") {
				t.Errorf("%s: the table says %q of %s %s, the role %q", version, said, row[2], row[3], want)
			}
		}
	}
}

var code = regexp.MustCompile("`([^`]+)`")

func TestTheFeaturesNamePartsThatThereAre(t *testing.T) {
	t.Parallel()
	parts := mustUsedRights(t)
	named := map[string]bool{}
	for _, row := range table(t, "Feature") {
		for _, found := range code.FindAllStringSubmatch(row[1], -1) {
			named[found[1]] = true
		}
	}
	if want, got := slices.Sorted(maps.Keys(parts)), slices.Sorted(maps.Keys(named)); !slices.Equal(want, got) {
		t.Errorf("the features have the parts %v, the rights file %v", got, want)
	}
}

// What an overlay adds to the stock role is what the stock role lacks of the parts.
func TestTheEndpointsFeatureGrantsWhatTheStockRoleLacks(t *testing.T) {
	t.Parallel()
	stock := stockRights(t, lab.DefaultVersion)
	lacking := map[right]bool{}
	for part, rights := range mustUsedRights(t) {
		for r := range rights {
			if part != "mesh-cluster" && !stock[r] {
				lacking[r] = true
			}
		}
	}
	complete := mustTyped[rbacv1.ClusterRole](t, mustRender(t, "complete"), "ClusterRole", "argo-rollouts-endpointslices")
	namespaced := namespacedEndpoints(t)
	for what, rules := range map[string][]rbacv1.PolicyRule{"cluster-wide": complete.Rules, "namespaced": namespaced} {
		if diff := cmp.Diff(lacking, rightsOf(rules), cmp.AllowUnexported(right{})); diff != "" {
			t.Errorf("%s (-lacking +granted):\n%s", what, diff)
		}
	}
}

func namespacedEndpoints(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	content, err := os.ReadFile(file("install/features/endpoints/namespaced/rights.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{}
	first, _, _ := strings.Cut(string(content), "\n---\n")
	if err := yaml.UnmarshalStrict([]byte(first), role); err != nil {
		t.Fatal(err)
	}
	return role.Rules
}

// The list of what is not needed is a promise about the rights file.
func TestNothingIsUsedThatThePageSaysIsNotNeeded(t *testing.T) {
	t.Parallel()
	for part, rights := range mustUsedRights(t) {
		for r := range rights {
			switch {
			case strings.Contains(fmt.Sprint(r), "*"), r.verb == "update", r.verb == "delete", r.verb == "deletecollection",
				r.verb == "create" && r.resource != "events",
				r.resource == "secrets" && part != "mesh-secret",
				strings.HasPrefix(r.resource, "pods/"), r.resource == "configmaps", r.resource == "nodes", r.resource == "namespaces",
				strings.HasPrefix(r.group, "rbac."), strings.HasPrefix(r.group, "apiextensions."), r.verb == "impersonate":
				t.Errorf("part %s has %s", part, r)
			}
		}
	}
}
