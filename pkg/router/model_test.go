package router

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// modelRuns is how many histories one test plays. Each has some dozens of
// actions; one that fails is shrunk to its shortest form and printed.
const modelRuns = 1500

// model is a Rollout in the hands of a controller that does what the real one
// does to a plugin: the order of its calls, its early return, what it does and
// leaves undone after an error. Around it pods come and go, people deploy, abort
// and edit by hand, the plugin restarts, and its own watch runs in between.
type model struct {
	t      *rapid.T
	w      *world
	router *Router
	// former are the processes of earlier leaders that still live: nobody calls
	// them, but their watches go on.
	former []*Router
	ro     *v1alpha1.Rollout
	level  string

	revision       int    // the newest
	canary, stable string // hashes; equal when fully promoted
	step           int32  // weight of the current step, 100 at the end
	recorded       int32  // weight in the status
	aborted        bool
	header         bool // the current step is a header route
	early          bool // v1.10 sets the weight before the hash, v1.8 does not

	// before is the state at the last write, lowered the time of the last write
	// that took weight from the canary, and taken what it then had.
	before  seen
	lowered time.Time
	taken   int32
	history []string
	version int // of the Rollout
}

// seen is what the mesh is told.
type seen struct {
	canaryWeight   int32
	canary, stable string
	// header tells that requests with a header go to the canary.
	header bool
}

func newModel(t *testing.T, rt *rapid.T, level string) *model {
	m := &model{t: rt, level: level, stable: "rev-1", canary: "rev-1", revision: 1, early: rapid.Bool().Draw(rt, "controller v1.10")}
	if level == "subset" {
		m.w = newWorld(t, subsetVirtualService, subsetDestinationRule)
		m.ro = rollout(subsetConfig)
	} else {
		m.w = newWorld(t, hostVirtualService)
		m.ro = rollout(hostConfig)
	}
	replicas := rapid.SampledFrom([]int32{1, 2, 3, 10}).Draw(rt, "replicas")
	m.ro.Spec.Replicas = &replicas
	canary := m.ro.Spec.Strategy.Canary
	canary.Steps = append(canary.Steps, v1alpha1.CanaryStep{SetHeaderRoute: headerStep("hdr", true)})
	canary.TrafficRouting.ManagedRoutes = []v1alpha1.MangedRoutes{{Name: "hdr"}}
	m.ro.Spec.Strategy.Canary.DynamicStableScale = rapid.Bool().Draw(rt, "dynamicStableScale")
	m.w.pods("rev-1", replicas, replicas)
	m.w.rollouts["shop/cart"] = m.ro
	m.restart()
	m.reconcile() // the first deployment is done
	m.w.afterWrite = m.check
	m.before = m.see()
	return m
}

func (m *model) replicas() int32 { return *m.ro.Spec.Replicas }

func (m *model) note(format string, args ...any) {
	m.history = append(m.history, fmt.Sprintf(format, args...))
}

// restart is a new process: its memory is empty.
func (m *model) restart() {
	m.note("the plugin starts")
	m.router = m.w.router()
}

// reconcile is one round of the controller.
func (m *model) reconcile() {
	ctx := context.Background()
	m.router.Called()
	m.status()
	desired := m.desired()
	m.w.rollouts["shop/cart"] = m.ro
	m.note("reconcile: canary %s, stable %s, asks for %d", m.having(m.canary), m.having(m.stable), desired)
	if m.canary == m.stable || m.aborted || m.w.sets[m.canary].Available == 0 {
		if err := m.router.RemoveManagedRoutes(ctx, m.ro); err != nil {
			m.note("  RemoveManagedRoutes: %v", err)
			return
		}
	}
	if m.w.sets[m.stable].Available < (100-desired)*m.replicas()/100 {
		m.note("  early return")
		return
	}
	if m.header {
		if err := m.router.SetHeaderRoute(ctx, m.ro, m.ro.Spec.Strategy.Canary.Steps[1].SetHeaderRoute); err != nil {
			m.note("  SetHeaderRoute: %v", err)
			return
		}
	}
	m.selectors()
	if m.early && m.w.sets[m.canary].Available == 0 && m.recorded > 0 {
		if err := m.router.SetWeight(ctx, m.ro, desired, nil); err != nil {
			m.note("  early SetWeight: %v", err)
			return
		}
	}
	if err := m.router.UpdateHash(ctx, m.ro, m.canary, m.stable, nil); err != nil {
		m.note("  UpdateHash: %v", err)
		return
	}
	m.labelsAreRight()
	m.between()
	if err := m.router.SetWeight(ctx, m.ro, desired, nil); err != nil {
		m.note("  SetWeight: %v", err)
		return
	}
	m.recorded = desired
	m.between()
	verified, err := m.router.VerifyWeight(ctx, m.ro, desired, nil)
	m.note("  VerifyWeight: %v, %v", verified, err)
	if verified && m.see().canaryWeight != desired {
		m.fail("weight %d was verified, the object has %d", desired, m.see().canaryWeight)
	}
	if err == nil && !verified && desired == 100 {
		return
	}
	m.scale(desired)
}

// between is a look of the watch between two calls: the turn is free then.
func (m *model) between() {
	if rapid.Bool().Draw(m.t, "a look between two calls") {
		m.look(m.router)
	}
}

func (m *model) having(hash string) string {
	return fmt.Sprintf("%s with %d of %d pods", hash, m.w.sets[hash].Available, m.w.sets[hash].Size)
}

// desired is the weight that the controller asks for.
func (m *model) desired() int32 {
	if m.aborted || m.canary == m.stable || m.w.sets[m.canary].Available == 0 {
		return 0
	}
	return m.step
}

func (m *model) status() {
	before := m.ro.DeepCopy()
	defer func() {
		if !reflect.DeepEqual(before, m.ro) {
			m.version++
			m.ro.ResourceVersion = fmt.Sprint(m.version)
		}
	}()
	index, weight := int32(len(m.ro.Spec.Strategy.Canary.Steps)), m.step
	if weight < 100 {
		index = 0
	}
	m.ro.Spec.Strategy.Canary.Steps[0].SetWeight = &weight
	if m.header {
		index = 1
	}
	m.ro.Status = v1alpha1.RolloutStatus{StableRS: m.stable, CurrentPodHash: m.canary, CurrentStepIndex: &index, Abort: m.aborted}
}

// selectors are the controller's own at host level. It moves each before it
// calls, once the new hash has a pod.
func (m *model) selectors() {
	if m.level != "host" {
		return
	}
	for service, hash := range map[string]string{"shop/cart-canary": m.canary, "shop/cart-stable": m.stable} {
		if m.w.sets[hash].Available > 0 {
			m.w.services[service] = hash
		}
	}
	// Not the plugin's doing.
	m.before = m.see()
}

// scale is what follows a reconcile that was not ended by an error.
func (m *model) scale(desired int32) {
	if m.canary == m.stable {
		m.resize(m.stable, m.replicas())
		return
	}
	want := (m.step*m.replicas() + 99) / 100
	if m.aborted {
		want = 0
	}
	m.resize(m.canary, want)
	if m.ro.Spec.Strategy.Canary.DynamicStableScale {
		m.resize(m.stable, max((100-desired)*m.replicas()/100, min(1, 100-desired)))
	}
	if desired == 100 && m.w.sets[m.canary].Available >= m.replicas() {
		m.note("  promoted")
		m.stable = m.canary
		m.status()
	}
}

// resize sets a ReplicaSet's size; pods beyond it go at once, new ones come later.
func (m *model) resize(hash string, size int32) {
	m.w.pods(hash, min(m.w.sets[hash].Available, size), size)
}

func (m *model) see() seen {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	return m.seeLocked()
}

func (m *model) seeLocked() seen {
	s := seen{canary: m.w.services["shop/cart-canary"], stable: m.w.services["shop/cart-stable"]}
	var stable, canary int32
	if _, err := fmt.Sscanf(m.w.weightsLocked(), "%d/%d", &stable, &canary); err != nil {
		m.fail("weights %q", m.w.weightsLocked())
	}
	if stable < 0 || canary < 0 || stable+canary != 100 {
		m.fail("weights %d/%d", stable, canary)
	}
	s.canaryWeight, s.header = canary, m.w.managedLocked()
	if m.level == "subset" {
		s.canary, s.stable = m.w.hashOfLocked("canary"), m.w.hashOfLocked("stable")
	}
	return s
}

// check holds each write of the plugin against the invariants of the guard.
func (m *model) check() {
	now := m.seeLocked()
	before := m.before
	m.before = now
	m.note("  writes canary %d of %s, stable %s, header route %v", now.canaryWeight, now.canary, now.stable, now.header)
	canary, stable := m.availableOf(now.canary), m.availableOf(now.stable)
	if now.canaryWeight < before.canaryWeight {
		m.lowered, m.taken = m.w.clock.Now(), before.canaryWeight
		// Whether the stable itself has pods for its share is the controller's to
		// check; that its label names the stable is ours.
		if stable == 0 && canary > 0 && now.stable != m.stable && now.canary != now.stable {
			m.fail("traffic was sent to %s, which has no pod and is not the stable, while the canary has %d", now.stable, canary)
		}
	}
	if now.canaryWeight > before.canaryWeight && now.canary != now.stable {
		m.raised(now, canary, stable)
	}
	if now.canary != before.canary && canary == 0 && stable > 0 {
		m.moved(before, now)
	}
	if before.header && !now.header {
		m.lowered, m.taken = m.w.clock.Now(), max(1, m.taken)
	}
	if now.header && !before.header && canary == 0 {
		m.fail("a header route was made to %s, which has no pod", now.canary)
	}
}

// availableOf counts the pods behind a hash; a side without one selects them all.
func (m *model) availableOf(hash string) int32 {
	if hash != "" {
		return m.w.sets[hash].Available
	}
	var all int32
	for _, set := range m.w.sets {
		all += set.Available
	}
	return all
}

// raised checks a weight that went up against the guard's decision on the pods
// that there really are.
func (m *model) raised(now seen, canary, stable int32) {
	d := guard.Decide(guard.Facts{
		Desired: now.canaryWeight, Max: 100, Replicas: m.replicas(), Intended: m.replicas(),
		Canary: guard.Pods{Available: canary}, Stable: guard.Pods{Available: stable},
	})
	if d.Capped() {
		m.fail("weight %d is more than %s", now.canaryWeight, d)
	}
}

// moved checks a canary label that now names a hash without pods.
func (m *model) moved(before, now seen) {
	if now.canaryWeight > 0 || now.header {
		m.fail("the canary's label moved to %s, without a pod, at weight %d, header route %v", now.canary, now.canaryWeight, now.header)
	}
	onItsWay := m.w.clock.Now().Sub(m.lowered) < time.Second
	if onItsWay && m.taken > 0 && m.availableOf(before.canary) > 0 {
		m.fail("the canary's label moved to %s, without a pod, %s after its weight of %d was taken away",
			now.canary, m.w.clock.Now().Sub(m.lowered), m.taken)
	}
}

// labelsAreRight: success of UpdateHash with an old label in place is always wrong.
func (m *model) labelsAreRight() {
	if m.level != "subset" {
		return
	}
	if now := m.see(); now.canary != m.canary || now.stable != m.stable {
		m.fail("UpdateHash succeeded with canary %s and stable %s", now.canary, now.stable)
	}
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Logf("history:")
	for _, line := range m.history {
		m.t.Log(line)
	}
	m.t.Fatalf(format, args...)
}

// actions are all that may happen, in any order.
func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"reconcile":         func(*rapid.T) { m.reconcile() },
		"reconcile again":   func(*rapid.T) { m.reconcile() },
		"a pod comes":       func(t *rapid.T) { m.pod(t, 1) },
		"another pod comes": func(t *rapid.T) { m.pod(t, 1) },
		"a pod goes":        func(t *rapid.T) { m.pod(t, -1) },
		"all come":          func(t *rapid.T) { m.pod(t, m.replicas()) },
		"time passes": func(t *rapid.T) {
			m.w.pass(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
		},
		"next step": func(t *rapid.T) {
			m.step = rapid.SampledFrom([]int32{0, 10, 50, 70, 100}).Draw(t, "weight")
			m.header = rapid.Bool().Draw(t, "header step")
		},
		"deploy":  func(t *rapid.T) { m.deploy(t) },
		"abort":   func(*rapid.T) { m.aborted = true; m.note("abort") },
		"retry":   func(*rapid.T) { m.aborted = false; m.note("retry") },
		"restart": func(*rapid.T) { m.restart() },
		"a pod is noted in the status": func(*rapid.T) {
			m.version++
			m.ro.ResourceVersion = fmt.Sprint(m.version)
		},
		"writes fail": func(t *rapid.T) { m.refuse(t) },
		"new leader": func(*rapid.T) {
			m.former = append(m.former, m.router)
			m.restart()
		},
		"the watch":       func(*rapid.T) { m.look(m.router) },
		"a former watch":  func(t *rapid.T) { m.lookFormer(t) },
		"weights by hand": func(t *rapid.T) { m.edit(t) },
		"GitOps reverts":  func(*rapid.T) { m.revert() },
	}
}

// refuse makes the writes of one kind of object fail, or none.
func (m *model) refuse(t *rapid.T) {
	m.w.refuse = map[string]error{}
	kind := rapid.SampledFrom([]string{"", "", "VirtualService", "DestinationRule"}).Draw(t, "what cannot be written")
	if kind != "" {
		m.w.refuse[kind+" shop/cart"] = errors.New("the API server says no")
	}
	m.note("writes that fail: %q", kind)
}

// look is one look of a process's watch. Being refused is not a fault of it: what
// it waits for is told to the controller, too.
func (m *model) look(r *Router) {
	m.note("the watch looks")
	if _, err := r.watchLook(context.Background(), m.ro.UID); err != nil {
		m.note("  %v", err)
	}
}

func (m *model) lookFormer(t *rapid.T) {
	if len(m.former) > 0 {
		m.look(rapid.SampledFrom(m.former).Draw(t, "former"))
	}
}

// edit is somebody with kubectl, and revert somebody with a git repository. What
// they do is not the plugin's doing; what it makes of it is.
func (m *model) edit(t *rapid.T) {
	canary := rapid.SampledFrom([]int{0, 5, 50, 100}).Draw(t, "canary by hand")
	m.w.setWeights(fmt.Sprintf("%d/%d", 100-canary, canary))
	m.before = m.see()
	m.note("somebody sets the weights to %s", m.w.weights())
}

func (m *model) revert() {
	m.note("GitOps reverts the objects")
	if m.level == "subset" {
		m.w.apply(subsetVirtualService)
		m.w.apply(subsetDestinationRule)
	} else {
		m.w.apply(hostVirtualService)
	}
	m.before = m.see()
}

// pod changes how many pods of a known revision are available.
func (m *model) pod(t *rapid.T, change int32) {
	hash := fmt.Sprintf("rev-%d", rapid.IntRange(1, m.revision).Draw(t, "revision"))
	set := m.w.sets[hash]
	set.Available = max(0, min(set.Size, set.Available+change))
	m.w.sets[hash] = set
	m.note("%s has %d of %d pods", hash, set.Available, set.Size)
}

// deploy brings out a new revision, or goes back to an old one, in mid-canary or
// not. The ReplicaSet of an old one is as it was left.
func (m *model) deploy(t *rapid.T) {
	number := rapid.IntRange(1, m.revision+1).Draw(t, "revision")
	m.canary = fmt.Sprintf("rev-%d", number)
	if number > m.revision {
		m.revision = number
		m.resize(m.canary, rapid.Int32Range(0, m.replicas()).Draw(t, "size"))
	}
	m.aborted = false
	m.step = rapid.SampledFrom([]int32{0, 10, 100}).Draw(t, "first weight")
	m.note("deploy %s at %d", m.canary, m.step)
}

func TestNoHistoryOfControllerPodsAndPeopleBreaksTheGuard(t *testing.T) {
	runs := flag.Lookup("rapid.checks")
	before := runs.Value.String()
	if err := runs.Value.Set(fmt.Sprint(modelRuns)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = runs.Value.Set(before) }()
	for _, level := range []string{"subset", "host"} {
		t.Run(level, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				m := newModel(t, rt, level)
				rt.Repeat(m.actions())
			})
		})
	}
}
