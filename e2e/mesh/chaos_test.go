package mesh

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// seedsVariable is how many seeds are played: 3 unless it is set, 20 in a full run.
const seedsVariable = "MESH_CHAOS_SEEDS"

func seeds(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedsVariable)
	if text == "" {
		return 3
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n == 0 {
		t.Fatalf("%s=%q: use a number from 1 to 255", seedsVariable, text)
	}
	return n
}

// chaosPatience bounds one seed. What is asked is that the canary finishes: verify.level
// Mesh waits for endpoints, and Kubernetes' controller of EndpointSlices was seen to need
// more than three minutes after an outage, as its pauses between attempts double.
const chaosPatience = 10 * time.Minute

// It is not parallel: others would suffer. Host level is played with verify.level
// Mesh alone: after the death of an API server it is seconds until the EndpointSlices
// follow a Service's selector, and without a right to read them nobody can know.
func TestACanaryOutlivesTheDeathOfPluginControllerIstiodAndAPIServer(t *testing.T) {
	for seed := uint64(1); seed <= seeds(t); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), chaosPatience)
			defer cancel()
			kills := DrawKills(seed)
			t.Log(kills)
			results, err := stage.Chaos(ctx, kills,
				Cast{scenarios.Plugin, scenarios.Subset}, Cast{scenarios.Verified, scenarios.Subset}, Cast{scenarios.Verified, scenarios.Host})
			if err != nil {
				t.Error(err)
			}
			for _, r := range results {
				// Not the shares: clients come back to a killed istiod in their own time.
				check(t, r, nil)
				invariants(t, r.Timeline)
			}
		})
	}
}

// invariants are those of the guard that can be told from a recording with gaps: an
// API server that has just started has no history, so what was written last before
// its death may be missing. What was asked for at a moment is then not known for
// sure, but the pods bound the weight whatever is asked.
func invariants(t *testing.T, recorded timeline.Timeline) {
	t.Helper()
	recorded.Gaps = nil
	for _, violation := range timeline.Violations(recorded, timeline.Limits{Phase: "Healthy", Deadline: chaosPatience}) {
		t.Error(violation)
	}
	if peak := recorded.Measure().Canary; peak.Lasted > timeline.DefaultGrace {
		t.Errorf("the canary had more weight than its pods can take: %s", peak)
	}
}

func TestEverySeedKillsEveryVictimOnceAndTheSameSeedTheSame(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(20) {
		kills := DrawKills(seed)
		if diff := cmp.Diff(kills, DrawKills(seed)); diff != "" {
			t.Errorf("seed %d draws differently the second time:\n%s", seed, diff)
		}
		var victims []Victim
		for _, k := range kills {
			victims = append(victims, k.Victim)
			if k.After < 0 || k.After >= longestCalm || k.Down < 0 || k.Down >= longestDown {
				t.Errorf("seed %d: %s", seed, k)
			}
		}
		orders[fmt.Sprint(victims)] = true
		slices.Sort(victims)
		if want := []Victim{APIServerProcess, ControllerProcess, IstiodProcess, PluginProcess}; !cmp.Equal(victims, want) {
			t.Errorf("seed %d kills %v", seed, victims)
		}
	}
	if len(orders) < 5 {
		t.Errorf("20 seeds have only %d orders", len(orders))
	}
}
