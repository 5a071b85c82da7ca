package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// shared is the lab of all tests; pluginPath is the plugin under test, built
// with the race detector.
var (
	shared     *lab.Lab
	pluginPath string
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	ctx := context.Background()
	var err error
	if pluginPath, err = lab.BuildPlugin(ctx, lab.PluginOptions{Race: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = lab.Start(ctx, lab.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	return m.Run()
}

// controllers are started once, by the first test that needs them.
var controllers = struct {
	mu sync.Mutex
	of map[string]*controllerOnce
}{of: map[string]*controllerOnce{}}

type controllerOnce struct {
	once sync.Once
	c    *lab.Controller
	err  error
}

// controller returns the shared controller of a release, with the plugin.
func controller(t *testing.T, version string) *lab.Controller {
	t.Helper()
	controllers.mu.Lock()
	entry, ok := controllers.of[version]
	if !ok {
		entry = &controllerOnce{}
		controllers.of[version] = entry
	}
	controllers.mu.Unlock()
	entry.once.Do(func() {
		// Not the test's context: the controller outlives the test.
		entry.c, entry.err = shared.StartController(context.Background(), lab.ControllerOptions{
			Version: version, InstanceID: instanceID(version), PluginPath: pluginPath,
		})
	})
	if entry.err != nil {
		t.Fatal(entry.err)
	}
	return entry.c
}

func instanceID(version string) string {
	id := []byte("shared-" + version)
	return string(bytes.ReplaceAll(id, []byte("."), []byte("-")))
}

// patience bounds one scenario. A good run takes a tenth of it; the machines
// that run the tests are small and shared.
const patience = 2 * time.Minute

// play opens a scene, lets the test play in it, and returns what was recorded.
// The timeline is printed when the test fails.
func play(t *testing.T, c *lab.Controller, w Workload, script func(ctx context.Context, s *Scene) error) timeline.Timeline {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := Open(ctx, shared, c, w)
	if err != nil {
		t.Fatal(err)
	}
	err = script(ctx, s)
	recorded := s.Close(context.WithoutCancel(ctx))
	explain(t, c, s.Namespace, recorded)
	if err != nil {
		t.Error(err)
	}
	for _, line := range faults(t, c) {
		t.Errorf("in the controller's log, which holds what the plugin says: %s", line)
	}
	return recorded
}

// faults are the lines that no log may have.
func faults(t *testing.T, c *lab.Controller) []string {
	t.Helper()
	lines, err := c.Faults()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// explain prints, should the test fail, the timeline and what the controller
// and the plugin said of the namespace.
func explain(t *testing.T, c *lab.Controller, namespace string, recorded timeline.Timeline) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		var out bytes.Buffer
		if err := timeline.Print(&out, recorded); err != nil {
			t.Error(err)
		}
		t.Logf("timeline:\n%s\ncontroller's log (%s):\n%s", &out, c.Log(), c.Tail(60, namespace))
	})
}

// limits are the invariants of every scenario under the plugin. Where no pod is
// lost there is no moment at which traffic goes to a side without pods while the
// other has some: the order of the writes alone would be to blame.
func limits(mark, phase string, deadline time.Duration) timeline.Limits {
	return timeline.Limits{Rule: Allowed, Grace: time.Nanosecond, Mark: mark, Phase: phase, Deadline: deadline}
}

// withFailures is for scenarios in which the last pod of a side is lost: nobody
// can write before that, so the invariant gets the time that a write takes.
func withFailures(l timeline.Limits) timeline.Limits {
	l.Grace = timeline.DefaultGrace
	return l
}

// hold fails the test for every invariant that the timeline breaks.
func hold(t *testing.T, recorded timeline.Timeline, l timeline.Limits) {
	t.Helper()
	for _, violation := range timeline.Violations(recorded, l) {
		t.Error(violation)
	}
}

// promoted waits until a revision is healthy and all of the traffic is back on
// the stable side, which is one reconcile later.
func promoted(ctx context.Context, s *Scene, mark string) error {
	if _, err := s.AwaitPhase(ctx, mark, "Healthy"); err != nil {
		return err
	}
	_, err := s.Await(ctx, "weight 0 after the promotion", func(st timeline.State) bool {
		return st.CanaryWeight == 0 && st.StableHash == st.Rollout.PodHash && st.CanaryHash == st.Rollout.PodHash
	})
	return err
}

// deployed waits for the first healthy state, which every scenario begins with.
func deployed(ctx context.Context, s *Scene) error {
	_, err := s.AwaitPhase(ctx, "", "Healthy")
	return err
}
