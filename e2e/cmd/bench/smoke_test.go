package main

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// It keeps the command from rotting: what it measures here says nothing.
func TestASmallBenchmarkMeasuresEverythingThatALargeOneDoes(t *testing.T) {
	plugin, err := lab.BuildPlugin(t.Context(), lab.PluginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		options: options{canaries: []int{3}, idle: []int{1, 5}, window: time.Second},
		plugin:  plugin, progress: io.Discard,
	}
	var result crowdResult
	var rows []idleRow
	if err := b.inLab(t.Context(), func(ctx context.Context, l *lab.Lab) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() (err error) {
			result, err = b.crowd(ctx, l, b.canaries[0])
			return err
		})
		group.Go(func() (err error) {
			rows, err = b.measureIdle(ctx, l)
			return err
		})
		return group.Wait()
	}); err != nil {
		t.Fatal(err)
	}
	checkCrowd(t, result)
	checkIdle(t, rows)
}

func checkCrowd(t *testing.T, result crowdResult) {
	t.Helper()
	native, plugin := result.rows[0], result.rows[1]
	for _, r := range result.rows {
		if len(r.took) != 3 {
			t.Errorf("%s: %d of 3 canaries ended", r.router, len(r.took))
		}
		if r.requests.controller.of(writes...) == 0 {
			t.Errorf("%s: the controller has written nothing", r.router)
		}
	}
	for _, resource := range []string{"virtualservices", "destinationrules"} {
		if n, p := native.objects[resource], plugin.objects[resource]; n == 0 || p == 0 || p > n {
			t.Errorf("%s: %d versions with the native router, %d with the plugin", resource, n, p)
		}
	}
	// It may ask for a Rollout before it puts something back; all else it watches.
	for kind := range plugin.requests.plugin {
		if slices.Contains(reads, kind.verb) && kind != (kindOfRequest{"get", "rollouts"}) {
			t.Errorf("the plugin has read what it watches: %s", plugin.requests.plugin.list())
		}
	}
	if native.requests.plugin.all() != 0 || plugin.requests.plugin.of(writes...) == 0 {
		t.Error("requests of plugin and controller are not told apart")
	}
	// The idle Rollouts' model is played meanwhile, so there are more in all.
	if logged := result.logged(); logged == 0 || result.server.all() < logged {
		t.Errorf("the API server has counted %d writes of Istio's objects, its audit log has %d", result.server.all(), logged)
	}
}

func checkIdle(t *testing.T, rows []idleRow) {
	t.Helper()
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if r.after.resident == 0 || r.after.file == 0 || r.starting == 0 || r.early.of("watch") == 0 {
			t.Errorf("with %d Rollouts: %+v", r.rollouts, r)
		}
		if n := r.requests.of(append(writes, reads...)...); n != 0 {
			t.Errorf("with %d Rollouts the plugin sent %s", r.rollouts, r.requests.list())
		}
	}
}
