package lab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// gateRetry is the time after which a pod that could not be let through gets
// another chance.
const gateRetry = 500 * time.Millisecond

// Gate decides which of the gated pods of a namespace become ready, and how
// soon. Gated pods are those whose template carries [Gated] = "true". They are
// all let through at first; [Gate.Limit] and [Gate.Delay] change that for pods
// that come later, by label, with no change to a template and so to its hash.
//
// A pod that is not let through stays unready, so a limit is never exceeded,
// however slow the machine is. The methods may be called concurrently.
type Gate struct {
	lab       *Lab
	namespace string
	pods      listers.PodNamespaceLister
	wake      chan struct{}
	cancel    context.CancelFunc
	done      chan struct{}

	mu      sync.Mutex
	rules   []gateRule
	through map[types.UID]bool // let through by this gate; the cache may not show it yet
	failed  error
}

// gateRule holds for the pods that match its selector.
type gateRule struct {
	text     string
	selector labels.Selector
	limit    int // of pods let through at a time; negative means no limit
	delay    time.Duration
}

// Gate starts a gate for a namespace. It ends with ctx, with Close and with the
// lab; there should be only one for a namespace at a time.
func (l *Lab) Gate(ctx context.Context, namespace string) (*Gate, error) {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(l.ctx, cancel)
	factory := informers.NewSharedInformerFactoryWithOptions(l.Client, 0, informers.WithNamespace(namespace))
	g := &Gate{
		lab: l, namespace: namespace, pods: factory.Core().V1().Pods().Lister().Pods(namespace),
		wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}), through: map[types.UID]bool{},
	}
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { g.look() },
		UpdateFunc: func(any, any) { g.look() },
		DeleteFunc: func(any) { g.look() },
	})
	if err != nil {
		cancel()
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		cancel()
		return nil, fmt.Errorf("gate of namespace %s: pods not read: %w", namespace, context.Cause(ctx))
	}
	go g.run(ctx)
	return g, nil
}

// Limit lets at most n of the pods that match the selector be past the gate at
// a time, -1 for any number. Pods already past it stay so; a pod that is
// deleted makes room for another. Where several rules match a pod, the one set
// last counts.
func (g *Gate) Limit(selector string, n int) error {
	return g.set(selector, func(r *gateRule) { r.limit = n })
}

// Delay makes the pods that match the selector ready that long after they are
// let through, in place of what [ReadyAfter] in their template says; 0 leaves
// it to the template.
func (g *Gate) Delay(selector string, d time.Duration) error {
	return g.set(selector, func(r *gateRule) { r.delay = d })
}

// Close ends the gate and returns the first write that failed, if any did.
// Pods that wait go on waiting.
func (g *Gate) Close() error {
	g.cancel()
	<-g.done
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

// set changes the rule of a selector, or adds it, and makes it the latest.
func (g *Gate) set(text string, change func(*gateRule)) error {
	selector, err := labels.Parse(text)
	if err != nil {
		return fmt.Errorf("gate of namespace %s: selector %q: %w", g.namespace, text, err)
	}
	g.mu.Lock()
	rule := gateRule{text: text, selector: selector, limit: -1}
	if i := slices.IndexFunc(g.rules, func(r gateRule) bool { return r.text == text }); i >= 0 {
		rule = g.rules[i]
		g.rules = slices.Delete(g.rules, i, i+1)
	}
	change(&rule)
	g.rules = append(g.rules, rule)
	g.mu.Unlock()
	g.look()
	return nil
}

// look asks for another round; one that is already asked for is enough.
func (g *Gate) look() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *Gate) run(ctx context.Context) {
	defer close(g.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
			g.round(ctx)
		}
	}
}

// round lets through every pod that may pass now.
func (g *Gate) round(ctx context.Context) {
	pods, err := g.pods.List(labels.Everything())
	g.note(ctx, err)
	g.mu.Lock()
	chosen := choose(pods, g.rules, g.through)
	for _, c := range chosen {
		g.through[c.pod.UID] = true
	}
	g.mu.Unlock()
	for _, c := range chosen {
		annotations := map[string]any{Gated: gateOpen}
		if c.delay > 0 {
			annotations[ReadyAfter] = c.delay.String()
		}
		if err := g.lab.annotate(ctx, c.pod.Namespace, c.pod.Name, annotations); err != nil {
			g.note(ctx, err)
			g.mu.Lock()
			delete(g.through, c.pod.UID)
			g.mu.Unlock()
			time.AfterFunc(gateRetry, g.look) // an API server that comes back may have no event to tell
		}
	}
}

// note keeps the first failure for Close; those of the end of the gate do not count.
func (g *Gate) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed == nil {
		g.failed = err
	}
}

// passing is a pod that may pass, and how long it is to take until ready.
type passing struct {
	pod   *corev1.Pod
	delay time.Duration
}

// choose returns the waiting pods that the rules let through now, oldest first.
// Pods in through have passed, whatever their annotation still says.
func choose(pods []*corev1.Pod, rules []gateRule, through map[types.UID]bool) []passing {
	waiting, inside := []*corev1.Pod{}, make([]int, len(rules))
	for _, pod := range pods {
		state := pod.Annotations[Gated]
		switch {
		case pod.DeletionTimestamp != nil || state == "":
		case state == gateOpen || through[pod.UID]:
			if i := ruleFor(pod, rules); i >= 0 {
				inside[i]++
			}
		default:
			waiting = append(waiting, pod)
		}
	}
	slices.SortFunc(waiting, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	var chosen []passing
	for _, pod := range waiting {
		i := ruleFor(pod, rules)
		if i < 0 {
			chosen = append(chosen, passing{pod: pod})
			continue
		}
		if rules[i].limit < 0 || inside[i] < rules[i].limit {
			inside[i]++
			chosen = append(chosen, passing{pod: pod, delay: rules[i].delay})
		}
	}
	return chosen
}

// ruleFor returns the index of the latest rule that matches, or -1.
func ruleFor(pod *corev1.Pod, rules []gateRule) int {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].selector.Matches(labels.Set(pod.Labels)) {
			return i
		}
	}
	return -1
}
