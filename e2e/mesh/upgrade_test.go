package mesh

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestARolloutMovesFromNativeToThePluginAndBackWithoutLosingARequest(t *testing.T) {
	for _, level := range []scenarios.Level{scenarios.Subset, scenarios.Host} {
		for _, story := range []Story{UpgradedAtRest(level), UpgradedInCanary(level)} {
			t.Run(story.Name+", "+string(level), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				result, err := stage.Play(ctx, story, scenarios.Native)
				check(t, result, err)
				checkShares(t, result)
				parts, err := result.Parts(UpgradeParts()...)
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range parts {
					t.Log(part)
				}
				splitAtTwenty(t, parts, moving(story))
			})
		}
	}
}

// moving are the parts of a story in which a canary stands at its weight.
func moving(story Story) []string {
	if story.Name == UpgradedInCanary(story.Level).Name {
		return UpgradeParts()
	}
	return []string{NativeCanary, PluginCanary, NativeAgain}
}

// splitAtTwenty checks that the share was judged in those parts and was the weight.
func splitAtTwenty(t *testing.T, parts []Part, marks []string) {
	t.Helper()
	for _, part := range parts {
		judged := false
		for _, w := range part.Windows {
			judged = judged || w.Weight == moved && w.Long()
			if w.Long() && w.Off() > Points {
				t.Errorf("%s: the share was %.1f points off: %s", part.Mark, w.Off(), w)
			}
		}
		if slices.Contains(marks, part.Mark) && !judged {
			t.Errorf("%s: weight %d was not held for long enough to judge the share: %v", part.Mark, moved, part.Windows)
		}
	}
}

func TestPartsCutTheRequestsAtTheMarks(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	mark := func(name string, seconds int) timeline.Entry {
		return timeline.Entry{Name: name, At: time.Duration(seconds) * time.Second, Fact: timeline.Mark{}}
	}
	result := Result{
		Timeline: timeline.New(timeline.Subject{Namespace: "shop", Rollout: "cart"}, start, 10*time.Second,
			[]timeline.Entry{mark("one", 2), mark("two", 6)}),
		Record: fleet.Record{Began: start, Ended: at(10), Requests: []fleet.Request{
			{At: at(1), Failure: "before"}, {At: at(2)}, {At: at(5), Failure: "reset"}, {At: at(6)}, {At: at(9)},
		}},
	}
	parts, err := result.Parts("one", "two")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Part{{Mark: "one", Sent: 2, Lost: 1}, {Mark: "two", Sent: 2}}, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if _, err := result.Parts("three"); err == nil {
		t.Error("a mark that is not there is no error")
	}
}

func TestASideIsOpenWhileItNamesNoRevisionAndTwoHavePods(t *testing.T) {
	subject := timeline.Subject{
		Namespace: "shop", Rollout: "cart", VirtualServices: []string{"cart"},
		DestinationRule: "cart", CanarySubset: "canary", StableSubset: "stable",
	}
	version := uint64(0)
	entry := func(second int, name string, fact timeline.Fact) timeline.Entry {
		version++
		return timeline.Entry{Name: name, At: time.Duration(second) * time.Second, Fact: fact, ResourceVersion: version, Found: second == 0}
	}
	rule := func(canary string) timeline.DestinationRule {
		return timeline.DestinationRule{Host: "cart", Hashes: map[string]string{"stable": "old", "canary": canary}}
	}
	pods := func(hash string, n int32) timeline.ReplicaSet {
		return timeline.ReplicaSet{Hash: hash, Pods: timeline.Pods{Size: n, Ready: n, Available: n}}
	}
	recorded := timeline.New(subject, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), 10*time.Second, []timeline.Entry{
		entry(0, "cart-old", pods("old", 2)), entry(0, "cart-new", pods("new", 1)), entry(0, "cart", rule("new")),
		entry(4, "cart", rule("")), entry(6, "cart", rule("new")),
		entry(8, "cart-new", pods("new", 0)), entry(9, "cart", rule("")), // nobody else has pods
	})
	for _, tc := range []struct{ from, to, want time.Duration }{
		{0, 10, 2}, {0, 4, 0}, {5, 10, 1}, {5, 6, 1}, {6, 10, 0},
	} {
		if got := open(recorded, tc.from*time.Second, tc.to*time.Second); got != tc.want*time.Second {
			t.Errorf("from %d s to %d s a side was open for %s, want %d s", tc.from, tc.to, got, tc.want)
		}
	}
}
