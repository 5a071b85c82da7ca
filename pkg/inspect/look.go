package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// Options are the choices of a look.
type Options struct {
	// Router is what the operator has told the plugin. PluginName must be set.
	Router router.Options
	// Events is how many are shown at most, 0 or more.
	Events int
	// Now is the time; nil is the real one.
	Now func() time.Time
}

// Seen is what one look has found.
type Seen struct {
	At      time.Time
	Rollout *v1alpha1.Rollout
	// Explanation is nil where the plugin cannot handle the Rollout, for which Refused
	// is the reason, and where a right or a kind is missing, which is what Unread says.
	// Part has of it what can be told all the same, in Services and Sides.
	Explanation     *router.Explanation
	Refused, Unread error
	Part            router.Explanation
	// Events are all about the Rollout, the newest first, Shown how many of them are to
	// be shown.
	Events []Event
	Shown  int
	Notes  []string
}

// ErrNoRollout is in the error of Look where there is no such Rollout.
var ErrNoRollout = errors.New("there is no such Rollout")

// Look reads one Rollout and what belongs to it. An error says that nothing can be told,
// and what to do: there is no such Rollout, it is not routed by this plugin, it may not be
// read or the cluster does not serve its kind (a *MissingRightError or *MissingKindError),
// or the cluster does not answer. Of what belongs to it, a right or kind that is missing is
// no error: see Seen.
func Look(ctx context.Context, reader Reader, options Options, namespace, name string) (Seen, error) {
	seen := Seen{At: time.Now(), Shown: options.Events}
	if options.Now != nil {
		seen.At = options.Now()
	}
	s := newSight(ctx, reader, namespace)
	ro, err := s.rollout(name)
	if err != nil {
		return Seen{}, err
	}
	if err := ours(ro, options.Router.Config.PluginName); err != nil {
		return Seen{}, err
	}
	seen.Rollout = ro
	explanation, err := router.Explain(ctx, s, options.Router, ro)
	s.needServices(&explanation)
	switch {
	case ctx.Err() != nil:
		return Seen{}, ctx.Err()
	case len(s.failed) > 0:
		return Seen{}, fmt.Errorf("Rollout %s/%s: %w", namespace, name, errors.Join(s.failed...))
	case len(s.unread) > 0:
		seen.Unread, seen.Part = errors.Join(s.unread...), explanation
	case err != nil:
		seen.Refused, seen.Part = err, explanation
	default:
		seen.Explanation = &explanation
	}
	seen.Events = s.events(ro)
	seen.Notes = s.notes
	return seen, nil
}

func (s *sight) rollout(name string) (*v1alpha1.Rollout, error) {
	o, err := s.get(rollouts.GroupResource(), []string{rollouts.Version}, s.namespace, name)
	switch {
	case apierrors.IsNotFound(err) && !outOfSight(err):
		return nil, fmt.Errorf("Rollout %s/%s: %w in this cluster: -n names another namespace, --context another cluster", s.namespace, name, ErrNoRollout)
	case err != nil:
		return nil, fmt.Errorf("Rollout %s/%s: %w", s.namespace, name, err)
	}
	return into[v1alpha1.Rollout](o)
}

// ours refuses a Rollout that others route, or nobody.
func ours(ro *v1alpha1.Rollout, plugin string) error {
	canary := ro.Spec.Strategy.Canary
	none := func(format string, args ...any) error {
		return fmt.Errorf("Rollout %s/%s does not use this plugin: %s", ro.Namespace, ro.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case canary == nil:
		return none("spec.strategy.canary is not set, and only a canary strategy has traffic routing")
	case canary.TrafficRouting == nil:
		return none("spec.strategy.canary.trafficRouting is not set")
	}
	routing := canary.TrafficRouting
	if _, there := routing.Plugins[plugin]; there {
		return nil
	}
	switch names := slices.Sorted(maps.Keys(routing.Plugins)); {
	case len(names) > 0:
		return none("spec.strategy.canary.trafficRouting.plugins has %s and not %s: --plugin-name says under which name the plugin is registered", strings.Join(names, ", "), plugin)
	case routing.Istio != nil:
		return none("spec.strategy.canary.trafficRouting.istio is the native router's; docs/migration.md says how to change over")
	}
	return none("spec.strategy.canary.trafficRouting.plugins is not set")
}

// events are those about the Rollout, the newest first.
func (s *sight) events(ro *v1alpha1.Rollout) []Event {
	fields := "involvedObject.kind=Rollout,involvedObject.name=" + ro.Name
	found, err := list[corev1.Event](s, events, ro.Namespace, "", fields)
	if err != nil {
		s.note("Events of namespace %s could not be read: %v", ro.Namespace, err)
	}
	var all []Event
	for _, e := range found {
		if e.InvolvedObject.UID == "" || e.InvolvedObject.UID == ro.UID {
			all = append(all, eventOf(e))
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(b.Last.Compare(a.Last), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return all
}

// eventOf reads the fields of both generations of Events.
func eventOf(e corev1.Event) Event {
	one := Event{Last: e.LastTimestamp.Time, Count: max(1, e.Count), Type: e.Type, Reason: e.Reason, Message: e.Message}
	if e.Series != nil {
		one.Last, one.Count = e.Series.LastObservedTime.Time, max(1, e.Series.Count)
	}
	for _, at := range []time.Time{e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time} {
		if one.Last.IsZero() {
			one.Last = at
		}
	}
	one.Last = one.Last.UTC().Truncate(time.Second)
	return one
}
