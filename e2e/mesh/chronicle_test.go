package mesh

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
)

func TestEndpointsAreCountedByRevision(t *testing.T) {
	no := false
	pod := func(name string) *corev1.ObjectReference { return &corev1.ObjectReference{Kind: "Pod", Name: name} }
	got := count(&discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{
		{TargetRef: pod("cart-b-1")}, {TargetRef: pod("cart-b-2")}, {},
		{TargetRef: pod("cart-a-1"), Conditions: discoveryv1.EndpointConditions{Ready: &no}},
	}})
	if want := "a 0 ready, b 2 ready"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOnlyPushesWithinTheTimeAreReadFromIstiodsLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "istiod.log")
	content := "2026-01-01T00:00:01.000000Z\tinfo\tads\tXDS: Pushing Services:1\n" +
		"2026-01-01T00:00:02.500000Z\tinfo\tads\tPush debounce stable[1]\n" +
		"2026-01-01T00:00:02.600000Z\tinfo\tads\tADS: new connection\n" +
		"2026-01-01T00:00:02.700000Z\tinfo\tkube\tPushing something else\n" +
		"no stamp\tinfo\tads\tPush\n" +
		"2026-01-01T00:00:03.000000Z\tinfo\tads\tXDS: Pushing Services:2\n"
	if err := os.WriteFile(log, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	second := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	got, err := pushes(log, second(2), second(3))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].What != "istiod: Push debounce stable[1]" || got[0].At.Sub(second(2)) != 500*time.Millisecond {
		t.Errorf("pushes %v", got)
	}
	if _, err := pushes(log+"x", second(2), second(3)); err == nil {
		t.Error("no error for a log that is not there")
	}
}

func TestWhatHappenedAroundALostRequestIsToldInOrder(t *testing.T) {
	r := Result{Timeline: split(t, 20), Moments: []Moment{
		{time.Unix(1000, 0).Add(10100 * time.Millisecond), "istiod: pushed"}, {time.Unix(1000, 0).Add(25 * time.Second), "istiod: much later"},
	}}
	r.Record.Requests = []fleet.Request{{At: time.Unix(1000, 0).Add(10200 * time.Millisecond), Failure: "nobody there", Client: 3}}
	var out bytes.Buffer
	if err := r.WriteLost(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	want := []string{"10.000s  VirtualService cart", "10.100s  istiod: pushed", "10.200s  LOST by client 3"}
	if len(lines) != len(want) {
		t.Fatalf("told:\n%s", &out)
	}
	for i, w := range want {
		if !strings.Contains(lines[i], w) {
			t.Errorf("line %d is %q, want %q", i, lines[i], w)
		}
	}
	out.Reset()
	if err := (Result{}).WriteLost(&out); err != nil || out.Len() > 0 {
		t.Errorf("nothing was lost, and it tells %q (%v)", &out, err)
	}
}
