package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// shared is the lab of all tests, controller the one with the plugin; binary is the plugin.
var (
	shared     *lab.Lab
	controller *lab.Controller
	binary     string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	ctx := context.Background()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var err error
	if binary, err = lab.BuildPlugin(ctx, lab.PluginOptions{Race: true}); err != nil {
		return fail(err)
	}
	if shared, err = lab.Start(ctx, lab.Options{}); err != nil {
		return fail(err)
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	if controller, err = shared.StartController(ctx, lab.ControllerOptions{PluginPath: binary}); err != nil {
		return fail(err)
	}
	return m.Run()
}

// patience bounds one test. A good run takes a tenth of it; the machines that run the
// tests are small and shared.
const patience = 4 * time.Minute

// report is the part of the JSON that is held against the cluster.
type report struct {
	Waiting string
	Rollout struct {
		Way            string
		Step, Steps    int
		Canary, Stable string
	}
	Weights struct {
		Asked, Allowed, Next int32
		Applied, Recorded    *int32
		Reason               string
	}
	Sides []struct {
		Role, Hash, Waits string
		Right             bool
		Available, Size   int32
		Intended          *int32
		Endpoints         *int
	}
	Events []struct{ Reason string }
	Notes  []string
}

// inspect runs the binary for Rollout cart by a kubeconfig and returns what it printed and how
// it ended.
func inspect(ctx context.Context, t *testing.T, kubeconfig, namespace string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return inspectAny(ctx, t, kubeconfig, namespace, append([]string{"cart"}, args...)...)
}

// inspectAny is inspect with whatever name there is in the arguments.
func inspectAny(ctx context.Context, t *testing.T, kubeconfig, namespace string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	args = append([]string{"inspect", "--kubeconfig", kubeconfig, "-n", namespace, "--request-timeout", "1m"}, args...)
	command := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v\n%s", args, err, &errs)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

// reported is inspect's JSON.
func reported(ctx context.Context, t *testing.T, namespace string, wantCode int) report {
	t.Helper()
	stdout, stderr, code := inspect(ctx, t, shared.AdminKubeconfig, namespace, "-o", "json")
	var r report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s; on stderr: %s", err, stdout, stderr)
	}
	if code != wantCode || len(r.Notes) > 0 {
		t.Errorf("exit code %d, want %d; notes %q; %s", code, wantCode, r.Notes, stdout)
	}
	return r
}

// TestAHeldRollbackIsTold plays the incident that the project was made for, and asks at
// rest, while the rollback is held, and once it is over.
func TestAHeldRollbackIsTold(t *testing.T) {
	for _, level := range []scenarios.Level{scenarios.Subset, scenarios.Host} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			i := scenarios.Incident{Level: level, Replicas: 20, Last: 100, Ready: 2}
			i.During = func(ctx context.Context, s *scenarios.Scene, hash string) error { return held(ctx, t, s, hash) }
			recorded, err := scenarios.Play(ctx, shared, controller, i.Workload(scenarios.Plugin), func(ctx context.Context, s *scenarios.Scene) error {
				if err := i.Play(ctx, s); err != nil {
					return err
				}
				return atRest(ctx, t, s)
			})
			if err != nil {
				t.Error(err)
			}
			if t.Failed() {
				_ = timeline.Print(t.Output(), recorded)
			}
		})
	}
}

// held asks while 2 of 20 pods are there.
func held(ctx context.Context, t *testing.T, s *scenarios.Scene, hash string) error {
	state, err := s.Await(ctx, "the weight for two pods, and its Event", func(st timeline.State) bool {
		return st.CanaryWeight == 10 && st.CanaryHash == hash && st.Rollout.DesiredWeight == 100 && hasEvent(st, "CanaryWeightCapped")
	})
	if err != nil {
		return err
	}
	r := reported(ctx, t, s.Namespace, 1)
	want := "Waits for the pods of revision " + hash + ", which is rolled back to within rollbackWindow: canary held at 10 of 100: 2 of 20 replicas available."
	if r.Waiting != want {
		t.Errorf("%s\nwant: %s", r.Waiting, want)
	}
	w := r.Weights
	if w.Asked != state.Rollout.DesiredWeight || w.Recorded == nil || *w.Recorded != w.Asked || w.Applied == nil || *w.Applied != 10 || w.Allowed != 10 || w.Next != 10 {
		t.Errorf("weights %+v", w)
	}
	for _, side := range r.Sides {
		available := map[string]int32{"canary": 2, "stable": 20}[side.Role]
		if !side.Right || side.Available != available || side.Intended == nil || *side.Intended != 20 || side.Endpoints == nil || *side.Endpoints != int(available) {
			t.Errorf("%+v", side)
		}
	}
	if len(r.Events) == 0 {
		t.Error("no Events")
	}
	table, _, code := inspect(ctx, t, shared.AdminKubeconfig, s.Namespace)
	if code != 1 || strings.Split(table, "\n")[1] != want {
		t.Errorf("exit code %d\n%s", code, table)
	}
	return nil
}

func hasEvent(st timeline.State, reason string) bool {
	for _, event := range st.Events {
		if event.Reason == reason {
			return true
		}
	}
	return false
}

// atRest asks once everything is over.
func atRest(ctx context.Context, t *testing.T, s *scenarios.Scene) error {
	state, err := s.Await(ctx, "all traffic on the stable side", func(st timeline.State) bool {
		return st.Rollout.Phase == "Healthy" && st.CanaryWeight == 0 && st.StableHash == st.Rollout.PodHash && st.CanaryHash == st.Rollout.PodHash
	})
	if err != nil {
		return err
	}
	r := reported(ctx, t, s.Namespace, 0)
	if want := "Waits for nothing: revision " + state.StableHash + " is stable, and has all traffic."; r.Waiting != want {
		t.Errorf("%s\nwant: %s", r.Waiting, want)
	}
	return noRights(ctx, t, s.Namespace)
}

// noRights asks as somebody who may do nothing, then with the Role of docs/cli.md, and then
// without a part of it.
func noRights(ctx context.Context, t *testing.T, namespace string) error {
	kubeconfig, err := shared.Kubeconfig(lab.User{Name: "jane"}, nil)
	if err != nil {
		return err
	}
	if _, stderr, code := inspect(ctx, t, kubeconfig, namespace); code != 2 || !strings.Contains(stderr, "missing right: get rollouts.argoproj.io in namespace "+namespace) {
		t.Errorf("without rights: exit code %d, %s", code, stderr)
	}
	if _, stderr, code := inspectAny(ctx, t, kubeconfig, namespace); code != 2 || !strings.Contains(stderr, "missing right: list rollouts.argoproj.io in namespace "+namespace) {
		t.Errorf("without rights and a name: exit code %d, %s", code, stderr)
	}
	if _, stderr, code := inspect(ctx, t, shared.AdminKubeconfig, "default"); code != 2 || !strings.Contains(stderr, "Rollout default/cart: there is no such Rollout") {
		t.Errorf("in another namespace: exit code %d, %s", code, stderr)
	}
	role, err := documentedRole()
	if err != nil {
		return err
	}
	if err := grant(ctx, namespace, "jane", role.Rules); err != nil {
		return err
	}
	if err := lab.Until(ctx, "the rights to be there", func(ctx context.Context) (bool, error) {
		stdout, stderr, code := inspect(ctx, t, kubeconfig, namespace)
		return code == 0 && stderr == "" && !strings.Contains(stdout, "note:"), nil
	}); err != nil {
		return err
	}
	if _, stderr, code := inspectAny(ctx, t, kubeconfig, namespace); code != 2 || !strings.HasSuffix(stderr, "routes cart\n") {
		t.Errorf("without a name: exit code %d, %s", code, stderr)
	}
	return withoutIstio(ctx, t, namespace, role)
}

// withoutIstio asks as somebody who may read all but Istio's objects, and gets the rest.
func withoutIstio(ctx context.Context, t *testing.T, namespace string, role rbacv1.Role) error {
	kubeconfig, err := shared.Kubeconfig(lab.User{Name: "joe"}, nil)
	if err != nil {
		return err
	}
	rules := slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.APIGroups, "networking.istio.io") })
	if err := grant(ctx, namespace, "joe", rules); err != nil {
		return err
	}
	return lab.Until(ctx, "a report without Istio's objects", func(ctx context.Context) (bool, error) {
		stdout, stderr, code := inspect(ctx, t, kubeconfig, namespace)
		return code == 2 && strings.Contains(stderr, "missing right: get virtualservices.networking.istio.io in namespace "+namespace) &&
			strings.Contains(stdout, "20/20") && strings.Contains(stdout, "\nEvents\n") && !strings.Contains(stdout, "note:"), nil
	})
}

// documentedRole is the Role of docs/cli.md.
func documentedRole() (role rbacv1.Role, err error) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		return role, err
	}
	_, rest, found := strings.Cut(string(page), "```yaml\napiVersion: rbac.authorization.k8s.io/v1\n")
	block, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		return role, errors.New("docs/cli.md has no Role")
	}
	return role, yaml.UnmarshalStrict([]byte("apiVersion: rbac.authorization.k8s.io/v1\n"+block), &role)
}

// grant gives somebody these rights in a namespace.
func grant(ctx context.Context, namespace, user string, rules []rbacv1.PolicyRule) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := shared.Client.RbacV1().Roles(namespace).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := shared.Client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	return err
}
