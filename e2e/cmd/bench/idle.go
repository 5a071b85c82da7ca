package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

const (
	// revisions is how many ReplicaSets each idle Rollout has.
	revisions = 3
	// settling lies, at most, between the last first call and the measured time: what the
	// start left behind is collected, and Events are out.
	settling = 15 * time.Second
	// askedPatience bounds the time until the controller has asked about each Rollout.
	askedPatience = 5 * time.Minute
)

// idleRow is what so many Rollouts cost the plugin while nothing happens.
type idleRow struct {
	rollouts int
	// starting is the CPU time from the plugin's start until it had been asked about
	// each Rollout once, and a little beyond.
	starting time.Duration
	// after is the use at the end of the measured time, which was window long, and busy
	// the CPU time in it.
	after  consumption
	window time.Duration
	busy   time.Duration
	// requests are the plugin's in the measured time, early those before.
	requests, early counted
}

// idleStage is a lab in which nothing happens to Rollouts.
type idleStage struct {
	lab        *lab.Lab
	controller *lab.Controller
	namespace  string
	model      pattern
	there      int // copies of the model
	say        func(format string, args ...any)
	window     time.Duration
}

// measureIdle measures each number of Rollouts that was asked for.
func (b *bench) measureIdle(ctx context.Context, l *lab.Lab) ([]idleRow, error) {
	s, err := b.openIdle(ctx, l)
	if err != nil {
		return nil, err
	}
	var rows []idleRow
	for _, rollouts := range b.idle {
		row, err := s.measure(ctx, rollouts)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// openIdle brings the model to rest.
func (b *bench) openIdle(ctx context.Context, l *lab.Lab) (*idleStage, error) {
	s := &idleStage{lab: l, say: b.say, window: b.window}
	var err error
	s.controller, err = l.StartController(ctx, lab.ControllerOptions{
		InstanceID: "idle", PluginPath: b.plugin,
		// What is measured is the plugin. So the controller need not be as slow as its
		// own limit makes it.
		Args: []string{"--qps=1000", "--burst=1000"},
	})
	if err != nil {
		return nil, err
	}
	if s.namespace, err = l.Namespace(ctx, "idle"); err != nil {
		return nil, err
	}
	if err := s.playModel(ctx); err != nil {
		return nil, fmt.Errorf("the model of the idle Rollouts: %w\n%s", err, s.controller.Tail(20))
	}
	s.model, err = readPattern(ctx, l, s.namespace, modelName)
	if err == nil && len(s.model.hashes) != revisions {
		err = fmt.Errorf("the model has %d ReplicaSets, want %d", len(s.model.hashes), revisions)
	}
	return s, err
}

// playModel brings out three revisions and takes the pods away: a copy has none, and
// without pods nobody but the controller has anything to do with it.
func (s *idleStage) playModel(ctx context.Context) error {
	o := original{s.lab, s.namespace, member{
		name: modelName, router: scenarios.Plugin, steps: []v1alpha1.CanaryStep{scenarios.SetWeight(50)}, controller: s.controller.Labels(),
	}}
	if err := o.play(ctx, revisions); err != nil {
		return err
	}
	if err := o.patch(ctx, `{"op":"replace","path":"/spec/replicas","value":0}`); err != nil {
		return err
	}
	return o.await(ctx, 0, revisions)
}

// grow makes copies until there are so many Rollouts. The controller is not there
// meanwhile: it would make ReplicaSets of its own.
func (s *idleStage) grow(ctx context.Context, rollouts int) error {
	names := copyNames(s.there+1, rollouts) // the model is one of them
	began := time.Now()
	if err := s.model.create(ctx, s.lab.Dynamic, s.namespace, names); err != nil {
		return err
	}
	s.there += len(names)
	s.say("%d Rollouts made, in %.0f s", len(names), time.Since(began).Seconds())
	return nil
}

// measure grows to so many Rollouts, starts controller and plugin, waits until the
// controller has asked about each, and looks at the plugin for a while.
func (s *idleStage) measure(ctx context.Context, rollouts int) (idleRow, error) {
	row := idleRow{rollouts: rollouts}
	s.controller.Stop()
	if err := s.grow(ctx, rollouts); err != nil {
		return row, err
	}
	started := time.Now()
	if err := s.askAll(ctx, rollouts); err != nil {
		return row, err
	}
	if err := sleep(ctx, min(settling, s.window)); err != nil {
		return row, err
	}
	pid, err := s.controller.PluginPID()
	if err != nil {
		return row, err
	}
	before, err := usageOf(pid)
	if err != nil {
		return row, err
	}
	middle := time.Now()
	early, err := trafficOf(s.lab, s.controller, started)
	if err != nil {
		return row, err
	}
	s.say("%d asked, %.1f MiB now; the controller wrote %d times", rollouts, mebibytes(before.resident), early.controller.of(writes...))
	if err := sleep(ctx, s.window); err != nil {
		return row, err
	}
	if row.after, err = usageOf(pid); err != nil {
		return row, err
	}
	row.window = time.Since(middle)
	row.starting, row.busy, row.early = before.cpu, row.after.cpu-before.cpu, early.plugin
	late, err := trafficOf(s.lab, s.controller, middle)
	row.requests = late.plugin
	if err != nil {
		return row, err
	}
	return row, s.check(ctx, rollouts)
}

// check tells whether all Rollouts are still what they were made as.
func (s *idleStage) check(ctx context.Context, rollouts int) error {
	list, err := s.lab.Client.AppsV1().ReplicaSets(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) != rollouts*revisions {
		return fmt.Errorf("%d idle Rollouts have %d ReplicaSets, want %d of each: the controller has rolled them", rollouts, len(list.Items), revisions)
	}
	return nil
}

// calledLine is what the controller logs before it calls the plugin.
var calledLine = regexp.MustCompile(`Reconciling TrafficRouting with type 'rollouts-plugin-trafficrouter-istio'.* rollout=(\S+)`)

// askAll starts the controller and waits until it has called the plugin for each
// Rollout.
func (s *idleStage) askAll(ctx context.Context, rollouts int) error {
	before, _ := os.ReadFile(s.controller.Log())
	if err := s.controller.Start(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askedPatience)
	defer cancel()
	asked := map[string]bool{}
	read := int64(len(before))
	return lab.Until(ctx, fmt.Sprintf("a call for each of %d Rollouts", rollouts), func(context.Context) (bool, error) {
		fresh, err := readFrom(s.controller.Log(), read)
		if err != nil {
			return false, err
		}
		fresh = fresh[:bytes.LastIndexByte(fresh, '\n')+1]
		read += int64(len(fresh))
		for _, found := range calledLine.FindAllSubmatch(fresh, -1) {
			asked[string(found[1])] = true
		}
		return len(asked) >= rollouts, nil
	})
}

// readFrom reads a file from a place on.
func readFrom(path string, offset int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(offset, 0); err != nil {
		return nil, err
	}
	var all bytes.Buffer
	_, err = all.ReadFrom(file)
	return all.Bytes(), err
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// isHealthy tells that a Rollout's status is that of its present spec, and Healthy.
func isHealthy(ro *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(ro.Object, "status", "phase")
	observed, _, _ := unstructured.NestedString(ro.Object, "status", "observedGeneration")
	return phase == "Healthy" && observed == fmt.Sprint(ro.GetGeneration())
}
