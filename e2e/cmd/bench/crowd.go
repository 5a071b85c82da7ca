package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

const (
	// defaultQPS and defaultBurst are the controller's own limit for each of its clients:
	// one for Rollouts, one for Istio's objects, one for all else.
	defaultQPS, defaultBurst = 40, 80
	// calm is how long nothing is written before the canaries begin.
	calm = 8 * time.Second
	// crowdPatience bounds the making of a crowd and its canaries, each.
	crowdPatience = 8 * time.Minute
	// lastRequests is for what still comes when all canaries are over: Events are
	// written in the background, and a request is in the audit log once it is answered.
	lastRequests = 4 * time.Second
)

// crowdSteps are those of each canary of a crowd.
func crowdSteps() []v1alpha1.CanaryStep {
	return []v1alpha1.CanaryStep{scenarios.SetWeight(50), scenarios.Pause(1), scenarios.SetWeight(100)}
}

// crowdRow is what one router made of canaries that began at once.
type crowdRow struct {
	router   scenarios.Router
	canaries int
	// took is how long each needed from its own new image until it was Healthy,
	// ascending; it has fewer entries than there are canaries if some never were.
	took []time.Duration
	// requests are those of its controller and plugin, objects the new versions of the
	// objects, whoever wrote them.
	requests traffic
	objects  versions
}

// crowdResult is what all routers made of as many canaries at the same time.
type crowdResult struct {
	rows []crowdRow
	// server are the writes of Istio's objects meanwhile by the API server's own counters.
	server counted
	qps    float64 // of each controller
}

// crowd is many Rollouts of one router in one namespace.
type crowd struct {
	lab        *lab.Lab
	controller *lab.Controller
	router     scenarios.Router
	namespace  string
	names      []string
	say        func(format string, args ...any)
}

// crowd plays so many canaries with each router at the same time, each under a
// controller of its own: a machine that is busy, or too small, is so for both.
func (b *bench) crowd(ctx context.Context, l *lab.Lab, canaries int) (crowdResult, error) {
	result := crowdResult{rows: make([]crowdRow, len(routers)), qps: cmp.Or(float64(b.qps), defaultQPS)}
	var crowds []*crowd
	defer func() {
		for _, c := range crowds {
			c.close(context.WithoutCancel(ctx))
		}
	}()
	for _, router := range routers {
		c, err := b.openCrowd(ctx, l, router, canaries)
		if err != nil {
			return result, err
		}
		crowds = append(crowds, c)
	}
	if err := together(ctx, crowds, func(ctx context.Context, _ int, c *crowd) error { return c.deploy(ctx) }); err != nil {
		return result, fmt.Errorf("before the canaries: %w\n%s", err, crowds[len(crowds)-1].controller.Tail(10))
	}
	return result, result.upgrade(ctx, l, crowds)
}

// upgrade plays the canaries themselves.
func (r *crowdResult) upgrade(ctx context.Context, l *lab.Lab, crowds []*crowd) error {
	if err := sleep(ctx, lastRequests); err != nil {
		return err
	}
	before, err := serverWrites(ctx, l)
	if err != nil {
		return err
	}
	began := time.Now()
	err = together(ctx, crowds, func(ctx context.Context, i int, c *crowd) (err error) {
		r.rows[i], err = c.upgrade(ctx)
		return err
	})
	if err = errors.Join(err, sleep(ctx, lastRequests)); err != nil {
		return err
	}
	after, err := serverWrites(ctx, l)
	if err != nil {
		return err
	}
	r.server = after.minus(before)
	for i, c := range crowds {
		if r.rows[i].requests, err = trafficOf(l, c.controller, began); err != nil {
			return err
		}
	}
	return nil
}

// together does something for all crowds at the same time.
func together(ctx context.Context, crowds []*crowd, do func(context.Context, int, *crowd) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range crowds {
		group.Go(func() error {
			if err := do(ctx, i, c); err != nil {
				return fmt.Errorf("%d Rollouts with the %s router: %w", len(c.names), c.router, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (b *bench) openCrowd(ctx context.Context, l *lab.Lab, router scenarios.Router, canaries int) (*crowd, error) {
	c := &crowd{lab: l, router: router, say: b.say}
	options := lab.ControllerOptions{InstanceID: fmt.Sprintf("crowd-%d-%s", canaries, router)}
	if router == scenarios.Plugin {
		options.PluginPath = b.plugin
	}
	if b.qps > 0 {
		options.Args = []string{fmt.Sprintf("--qps=%d", b.qps), fmt.Sprintf("--burst=%d", 2*b.qps)}
	}
	var err error
	if c.controller, err = l.StartController(ctx, options); err != nil {
		return nil, err
	}
	if c.namespace, err = l.Namespace(ctx, options.InstanceID); err != nil {
		return nil, err
	}
	c.names = append([]string{modelName}, copyNames(1, canaries)...)
	return c, nil
}

// close ends what would load the machine for who comes next.
func (c *crowd) close(ctx context.Context) {
	c.controller.Stop()
	// A namespace that stays is a nuisance and no wrong result.
	_ = c.lab.DeleteNamespace(ctx, c.namespace)
}

// each does something for every Rollout, some at a time.
func (c *crowd) each(ctx context.Context, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for _, name := range c.names {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// deploy brings out the first revision of one and makes the others its copies: the
// controller would need longer for that than for the canaries.
func (c *crowd) deploy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, crowdPatience)
	defer cancel()
	began := time.Now()
	o := original{c.lab, c.namespace, member{name: modelName, router: c.router, steps: crowdSteps(), controller: c.controller.Labels()}}
	if err := o.play(ctx, 1); err != nil {
		return err
	}
	p, err := readPattern(ctx, c.lab, c.namespace, modelName)
	if err != nil {
		return err
	}
	c.controller.Stop() // it would make ReplicaSets of its own
	if err := p.create(ctx, c.lab.Dynamic, c.namespace, c.names[1:]); err != nil {
		return err
	}
	if err := c.awaitPods(ctx); err != nil {
		return err
	}
	if err := c.controller.Start(ctx); err != nil {
		return err
	}
	err = c.awaitCalm(ctx)
	c.say("%s: %d Rollouts made in %.0f s", c.router, len(c.names), time.Since(began).Seconds())
	return err
}

// awaitPods waits until all pods are available.
func (c *crowd) awaitPods(ctx context.Context) error {
	return lab.Until(ctx, "the pods of all Rollouts", func(ctx context.Context) (bool, error) {
		if err := sleep(ctx, time.Second); err != nil { // there are many
			return false, err
		}
		list, err := c.lab.Client.AppsV1().ReplicaSets(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != len(c.names) {
			return false, err
		}
		for _, set := range list.Items {
			if set.Status.AvailableReplicas != memberReplicas {
				return false, nil
			}
		}
		return true, nil
	})
}

// awaitCalm waits until all Rollouts are at rest and nothing of them has been written
// for a while: a controller that has just started looks at each.
func (c *crowd) awaitCalm(ctx context.Context) error {
	w, err := watchCrowd(ctx, c.lab.Dynamic, c.namespace)
	if err != nil {
		return err
	}
	defer w.stop()
	written, since := -1, time.Now()
	return w.await(ctx, fmt.Sprintf("%d Rollouts to be at rest", len(c.names)), func() bool {
		if now := w.versions().all(); now != written {
			written, since = now, time.Now()
		}
		return w.atRest() == len(c.names) && time.Since(since) > calm
	})
}

// upgrade begins all canaries and waits until they are over.
func (c *crowd) upgrade(ctx context.Context) (crowdRow, error) {
	row := crowdRow{router: c.router, canaries: len(c.names)}
	w, err := watchCrowd(ctx, c.lab.Dynamic, c.namespace)
	if err != nil {
		return row, err
	}
	defer w.stop()
	began := time.Now()
	if err := c.begin(ctx, w); err != nil {
		return row, err
	}
	if err := c.awaitEnd(ctx, w); err != nil {
		return row, err
	}
	row.took, row.objects = w.took(), w.versions()
	c.say("%s: %d of %d canaries Healthy, all over after %.0f s", c.router, len(row.took), len(c.names), time.Since(began).Seconds())
	return row, nil
}

// begin gives every Rollout a new image.
func (c *crowd) begin(ctx context.Context, w *crowdWatch) error {
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, image(2))
	return c.each(ctx, func(ctx context.Context, name string) error {
		w.begins(name)
		_, err := c.lab.Dynamic.Resource(rolloutResource).Namespace(c.namespace).
			Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// awaitEnd waits until all traffic is back on the stable side. Canaries that are not
// over in time are a result, and no error.
func (c *crowd) awaitEnd(ctx context.Context, w *crowdWatch) error {
	patient, cancel := context.WithTimeout(ctx, crowdPatience)
	defer cancel()
	err := w.await(patient, "the canaries to end", func() bool { return len(w.took()) == len(c.names) && w.atRest() == len(c.names) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

// quantile is the smallest of ascending durations that is not exceeded by the part q
// of so many; ok is false where so few have ended that nobody knows.
func quantile(ascending []time.Duration, of int, q float64) (d time.Duration, ok bool) {
	at := min(int(q*float64(of)), of-1)
	if at < 0 || at >= len(ascending) || !slices.IsSorted(ascending) {
		return 0, false
	}
	return ascending[at], true
}
