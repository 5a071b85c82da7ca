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

// It is not parallel: others would suffer.
func TestACanaryOutlivesTheDeathOfPluginControllerIstiodAndAPIServer(t *testing.T) {
	for seed := uint64(1); seed <= seeds(t); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			kills := DrawKills(seed)
			t.Log(kills)
			results, err := stage.Chaos(ctx, scenarios.Plugin, kills, scenarios.Subset, scenarios.Host)
			if err != nil {
				t.Error(err)
			}
			for _, r := range results {
				check(t, r, nil)
				for _, violation := range timeline.Violations(r.Timeline, timeline.Limits{Rule: scenarios.Allowed, Phase: "Healthy", Deadline: 3 * time.Minute}) {
					t.Error(violation)
				}
			}
		})
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
