package simulate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

var update = flag.Bool("update", false, "write the golden files anew")

// screen is how wide a table may be.
const screen = 140

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), go test -update writes it anew:\n%s", path, diff)
	}
}

// fitsAScreen is for the tables: sentences may be longer.
func fitsAScreen(t *testing.T, text string) {
	t.Helper()
	for n, line := range strings.Split(text, "\n") {
		if strings.Contains(line, " | ") && utf8.RuneCountInString(line) > screen || strings.TrimRight(line, " \t") != line {
			t.Errorf("line %d is too wide, or has spaces at its end: %q", n+1, line)
		}
	}
}

const (
	stableHash = "7c9f8d6b45"
	canaryHash = "54d5b9b8d6"
)

// tape writes a timeline by hand, in the order of the calls.
type tape struct {
	now      time.Duration
	found    bool
	replicas int32
	entries  []timeline.Entry
}

// newTape begins with 20 stable pods, no canary pods, and all traffic on the stable side.
func newTape() *tape {
	t := &tape{found: true, replicas: 20}
	t.add("web", timeline.DestinationRule{Host: "web", Hashes: map[string]string{"canary": canaryHash, "stable": stableHash}})
	t.weight(0).pods(stableHash, 20).pods(canaryHash, 0).phase("Healthy")
	t.found = false
	return t
}

func (t *tape) add(name string, f timeline.Fact) {
	t.entries = append(t.entries, timeline.Entry{
		At: t.now, ResourceVersion: uint64(len(t.entries) + 1), Name: name, Found: t.found, Fact: f,
	})
}

// at sets the clock in seconds.
func (t *tape) at(seconds float64) *tape {
	t.now = time.Duration(seconds * float64(time.Second))
	return t
}

func (t *tape) weight(canary int32) *tape {
	t.add("web", timeline.VirtualService{Routes: []timeline.Route{{Name: "primary", Destinations: []timeline.Destination{
		{Host: "web", Subset: "stable", Weight: 100 - canary}, {Host: "web", Subset: "canary", Weight: canary},
	}}}})
	return t
}

func (t *tape) pods(hash string, available int32) *tape {
	t.add("web-"+hash, timeline.ReplicaSet{Hash: hash, Pods: timeline.Pods{Size: 20, Ready: available, Available: available}})
	return t
}

func (t *tape) phase(phase string) *tape {
	t.add("web", timeline.Rollout{Phase: phase, Steps: 5, StepIndex: 5, PodHash: canaryHash, StableRS: stableHash, Replicas: t.replicas, Current: true})
	return t
}

func (t *tape) timeline(seconds float64) timeline.Timeline {
	subject := timeline.Subject{
		Namespace: "shop", Rollout: "web", VirtualServices: []string{"web"},
		DestinationRule: "web", CanarySubset: "canary", StableSubset: "stable",
	}
	return timeline.New(subject, time.Time{}, time.Duration(seconds*float64(time.Second)), t.entries)
}

// nativeRollback sends all traffic to 2 pods, and for a second to none.
func nativeRollback() timeline.Timeline {
	t := newTape().at(0.5).phase("Progressing").at(2).pods(canaryHash, 2).weight(100)
	t.at(4).pods(canaryHash, 0).at(5).pods(canaryHash, 2)
	return t.at(8).pods(canaryHash, 20).at(30).phase("Healthy").timeline(31)
}

// pluginRollback lets the weight follow the pods.
func pluginRollback() timeline.Timeline {
	t := newTape().at(0.5).phase("Progressing").at(2).pods(canaryHash, 2).weight(10)
	return t.at(8).pods(canaryHash, 20).weight(100).at(20).phase("Healthy").timeline(21)
}
