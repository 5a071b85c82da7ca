package timeline

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGlanceTellsTrafficAndPodsOfTheRevision(t *testing.T) {
	states := guardedIncident().States()
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"before the controller has seen the Rollout": {State{}, "being created"},
		"in mid-rollback": {func() State {
			s := states[6]
			s.CanaryWeight = 10
			return s
		}(), "Progressing, 10 % on 2 of 20 pods"},
		"at rest": {states[0], "Healthy, 20 of 20 pods"},
	} {
		if got := Glance(c.state); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestProgressShowsBothRunsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, "abort", [2]string{"native", "plugin"})
		stop := p.Start()
		time.Sleep(glanceEvery + time.Second)
		healthyNow := func() State { return guardedIncident().States()[0] }
		p.Follow("native", healthyNow)
		p.Follow("plugin", healthyNow)
		time.Sleep(glanceEvery)
		p.Follow("plugin", nil)
		time.Sleep(glanceEvery)
		stop()
		time.Sleep(10 * glanceEvery)
		want := "  abort [  5 s] native: being created                                  plugin: being created\n" +
			"  abort [ 10 s] native: Healthy, 20 of 20 pods                         plugin: Healthy, 20 of 20 pods\n" +
			"  abort [ 15 s] native: Healthy, 20 of 20 pods                         plugin: over\n"
		if got := out.String(); got != want {
			t.Errorf("it wrote\n%s\nwant\n%s", got, want)
		}
	})
}
