package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

var (
	destinationRules = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
	coreServices     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// labelMismatch is something that keeps requests from the canary's pods although
// the hash is right.
type labelMismatch struct {
	resource     schema.GroupVersionResource
	harm, remedy string   // merge patches
	words        []string // of the Event
}

// subsets is a merge patch with these labels for the canary's pods.
func subsets(labels string) string {
	return fmt.Sprintf(`{"spec":{"subsets":[{"name":"stable","labels":{"app":"cart"}},{"name":"canary","labels":{"app":"cart"%s}}]}}`, labels)
}

func TestACanaryWhosePodsTheRoutingCannotReachGetsNoTraffic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]labelMismatch{
		"a subset label that the pods do not carry": {
			resource: destinationRules, harm: subsets(`,"track":"new"`), remedy: subsets(""),
			words: []string{"track=new", "its subset", "have no label track"},
		},
		// The Service of the two subsets: the controller checks the others itself.
		"a Service selector that does not select them": {
			resource: coreServices, harm: `{"spec":{"selector":{"tier":"web"}}}`, remedy: `{"spec":{"selector":{"tier":null}}}`,
			words: []string{"tier=web", "the selector of Service", "have no label tier"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkMismatch(t, c)
		})
	}
}

func checkMismatch(t *testing.T, c labelMismatch) {
	t.Helper()
	w := canary(Subset, SetWeight(50), Pause(1))
	recorded := play(t, controller(t, lab.DefaultVersion), w, func(ctx context.Context, s *Scene) error {
		if err := deployed(ctx, s); err != nil {
			return err
		}
		if err := s.Merge(ctx, c.resource, name, c.harm); err != nil {
			return err
		}
		if err := s.Deploy(ctx, "upgrade", 2); err != nil {
			return err
		}
		if _, err := s.Await(ctx, "the canary's pods", func(st timeline.State) bool { return st.Pods[st.Rollout.PodHash].Available == 5 }); err != nil {
			return err
		}
		if err := sleep(ctx, 4*time.Second); err != nil {
			return err
		}
		s.Mark("repaired")
		if err := s.Merge(ctx, c.resource, name, c.remedy); err != nil {
			return err
		}
		return promoted(ctx, s, "repaired")
	})
	hold(t, recorded, limits("repaired", "Healthy", time.Minute))
	endsPromoted(t, recorded)
	harmed := between(t, recorded, "upgrade", "repaired")
	for _, s := range harmed {
		if s.CanaryWeight != 0 {
			t.Errorf("at %s a canary that nothing can reach had weight %d", s.At, s.CanaryWeight)
			break // the states after it would say the same
		}
	}
	events := harmed[len(harmed)-1].Events
	text := ""
	for _, event := range events {
		if event.Reason == "SubsetMatchesNoPods" {
			text += event.Message + "\n"
		}
	}
	for _, word := range c.words {
		if !strings.Contains(text, word) {
			t.Errorf("no Event SubsetMatchesNoPods says %q:\n%s", word, text)
		}
	}
}
