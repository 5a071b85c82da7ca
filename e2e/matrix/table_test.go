package matrix

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

func TestTheTableSaysWhatWorksWhatIsLackingAndWhatFails(t *testing.T) {
	old, now := Ground{"v1.8.5", "v1"}, Ground{"v1.10.1", "v1"}
	host, subset := Cell{Story{Title: "canary"}, scenarios.Host}, Cell{Story{Title: "canary"}, scenarios.Subset}
	got := Table([]Outcome{
		{Ground: old, Cell: host, Lacking: true},
		{Ground: old, Cell: subset, Took: 7600 * time.Millisecond},
		{Ground: now, Cell: host, Took: time.Second},
		{Ground: now, Cell: subset, Lacking: true, Faults: []string{"it works"}},
	})
	want := `| Controller | Istio | canary, host | canary, subset |
|---|---|---|---|
| v1.8.5 | v1 | not supported | ok, 8 s |
| v1.10.1 | v1 | ok, 1 s | **fails** |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestOnlyFaultsAreExplained(t *testing.T) {
	good := Outcome{Ground: Ground{"v1.8.5", "v1"}}
	bad := Outcome{Ground: Ground{"v1.8.5", "v1"}, Faults: []string{"weights were [50]"}, Log: "said the plugin",
		Timeline: timeline.Timeline{Subject: timeline.Subject{Rollout: "cart"}}}
	var quiet, loud bytes.Buffer
	if err := good.Explain(&quiet); err != nil || quiet.Len() > 0 {
		t.Errorf("a good outcome is explained: %s, %v", &quiet, err)
	}
	if err := bad.Explain(&loud); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"controller v1.8.5, Istio v1", "weights were [50]", "said the plugin"} {
		if !strings.Contains(loud.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &loud)
		}
	}
}
