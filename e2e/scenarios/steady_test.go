package scenarios

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// reconciles is how many are forced in each steady state.
const reconciles = 20

// calledLine is what the controller logs before it calls the plugin, and
// doneLine what it logs at the end of a reconcile.
const (
	calledLine = "Reconciling TrafficRouting with type 'rollouts-plugin-trafficrouter-istio'"
	doneLine   = "Reconciliation completed"
)

func TestAReconcileThatFindsNothingToDoSendsNoRequest(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		// Its own controller, so that all that its plugin sends belongs to this Rollout.
		c := ownController(t, lab.ControllerOptions{InstanceID: "steady-" + string(level)})
		w := canary(level, SetWeight(10), Pause(600), SetWeight(100))
		recorded := play(t, c, w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 10); err != nil {
				return err
			}
			if err := pausedWithPods(ctx, s); err != nil {
				return err
			}
			if err := staysSilent(ctx, t, c, s, "a paused canary"); err != nil {
				return err
			}
			if err := s.PromoteFull(ctx, "promote"); err != nil {
				return err
			}
			if err := promoted(ctx, s, "promote"); err != nil {
				return err
			}
			return staysSilent(ctx, t, c, s, "a finished canary")
		})
		endsPromoted(t, recorded)
	})
}

func pausedWithPods(ctx context.Context, s *Scene) error {
	_, err := s.Await(ctx, "the pause", func(st timeline.State) bool {
		return st.Rollout.Phase == "Paused" && st.CanaryWeight == 10 && st.Pods[st.CanaryHash].Available == 1
	})
	return err
}

// staysSilent forces reconciles, one after the other, and counts what the plugin
// sends meanwhile. Watches are renewed every few minutes and do not count.
func staysSilent(ctx context.Context, t *testing.T, c *lab.Controller, s *Scene, state string) error {
	// What led here is still being written: Events come in the background.
	if err := sleep(ctx, 3*time.Second); err != nil {
		return err
	}
	before, err := pluginRequests(c)
	if err != nil {
		return err
	}
	calls := logged(c, s.Namespace, calledLine)
	for i := range reconciles {
		if err := s.reconcile(ctx, c, fmt.Sprintf("%s %d", state, i)); err != nil {
			return err
		}
	}
	if got := logged(c, s.Namespace, calledLine) - calls; got < reconciles {
		t.Errorf("%s: the plugin was called in %d reconciles, want at least %d", state, got, reconciles)
	}
	// A request is in the audit log once it is answered, an Event a little later.
	if err := sleep(ctx, 2*time.Second); err != nil {
		return err
	}
	after, err := pluginRequests(c)
	if err != nil {
		return err
	}
	for _, r := range after[len(before):] {
		t.Errorf("%s: in %d reconciles without work the plugin sent %s %s %s/%s (%d)", state, reconciles, r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
	}
	if len(before) == 0 {
		t.Errorf("%s: not one request of the plugin is known, so none would be seen", state)
	}
	return nil
}

// pluginRequests are those of this controller's plugin, without its watches.
func pluginRequests(c *lab.Controller) ([]lab.Request, error) {
	user := lab.ServiceAccount(c.Namespace, "argo-rollouts").Name
	return shared.Requests(func(r lab.Request) bool {
		return r.User == user && r.Verb != "watch" && strings.HasPrefix(r.UserAgent, "rollouts-plugin-trafficrouter-istio/")
	})
}

// reconcile makes the controller look at the Rollout and waits until it has.
func (s *Scene) reconcile(ctx context.Context, c *lab.Controller, note string) error {
	before := logged(c, s.Namespace, doneLine)
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/look":%q}}}`, note)
	if _, err := s.rollouts.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return err
	}
	return lab.Until(ctx, "a reconcile", func(context.Context) (bool, error) {
		return logged(c, s.Namespace, doneLine) > before, nil
	})
}

// logged counts the controller's lines about a namespace that hold a text.
func logged(c *lab.Controller, namespace, text string) int {
	content, err := os.ReadFile(c.Log())
	if err != nil {
		return 0
	}
	count := 0
	for line := range strings.Lines(string(content)) {
		if strings.Contains(line, text) && strings.Contains(line, namespace) {
			count++
		}
	}
	return count
}
