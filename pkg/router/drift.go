package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

const (
	// driftWindow and driftMost bound how often the watch puts back what somebody
	// else changes: more than so many corrections within the window are two writers
	// that undo each other.
	driftWindow = time.Minute
	driftMost   = 5
	// driftPause is the first pause after that; it doubles up to driftLongest for as
	// long as the other goes on.
	driftPause   = 10 * time.Second
	driftLongest = 5 * time.Minute
)

// drift keeps the pace of corrections for one Rollout.
type drift struct {
	// corrected are the times of the corrections within the window.
	corrected []time.Time
	// pause is the present pause between corrections, 0 while there is no quarrel;
	// until is its end.
	pause time.Duration
	until time.Time
}

// wait is how long the next correction has to wait.
func (d *drift) wait(now time.Time) time.Duration { return max(0, d.until.Sub(now)) }

// note keeps a correction. quarrel is true when it makes it clear, for the first
// time, that somebody else writes the same fields.
func (d *drift) note(now time.Time) (quarrel bool) {
	d.corrected = slices.DeleteFunc(d.corrected, func(at time.Time) bool { return now.Sub(at) >= driftWindow })
	if len(d.corrected) == 0 && now.Sub(d.until) >= driftWindow {
		d.pause = 0 // the other has given up
	}
	d.corrected = append(d.corrected, now)
	if len(d.corrected) <= driftMost && d.pause == 0 {
		return false
	}
	quarrel = d.pause == 0
	d.pause = min(driftLongest, max(driftPause, 2*d.pause))
	d.until = now.Add(d.pause)
	return quarrel
}

// heal is one look of the watch at one Rollout. It lowers a weight that the
// canary's pods cannot take any more, raises one only where the stable has no pod
// left, takes managed routes and shares of an
// experiment away with the last pod, and puts back what others changed in the
// routes, labels and subsets that are ours. It never goes beyond what the last
// call of the controller brought about. again is when to look anew, 0 for not
// before something changes.
func (r *Router) heal(ctx context.Context, s *situation, m *memory) (again time.Duration, err error) {
	v, err := r.judge(s, m, m.desired)
	if err != nil {
		return 0, err
	}
	if m.applied == nil {
		return 0, r.lower(ctx, s, m, v)
	}
	if s.pin == nil && s.pinErr == nil {
		moved, err := r.relabel(ctx, s, m)
		if err != nil {
			return 0, errorAfter(err, r.lower(ctx, s, m, v))
		}
		if moved {
			return watchBusy, nil // the weights are judged by the new labels
		}
		if m.applied == nil {
			return 0, nil // let go
		}
	}
	before := keptIn(s, *m.applied)
	target, err := r.still(s, before, v)
	if err != nil {
		return 0, err
	}
	switch {
	case s.holds(target):
		return 0, nil
	case s.holds(before):
		return 0, r.follow(ctx, s, m, v, target)
	default:
		return r.correct(ctx, s, m, v, target)
	}
}

// lower brings nothing but the weight down to what the pods can take.
func (r *Router) lower(ctx context.Context, s *situation, m *memory, v verdict) error {
	if !v.lowers(s.written) || !s.known {
		return nil
	}
	if err := r.writeRoutes(ctx, s, m, v.decision.Weight); err != nil {
		return err
	}
	r.reportCap(s, m, v)
	return nil
}

// follow writes what pods that went away leave of what was applied.
func (r *Router) follow(ctx context.Context, s *situation, m *memory, v verdict, target virtualservice.Target) error {
	if err := r.writeTarget(ctx, s, m, target); err != nil {
		return err
	}
	r.reportCap(s, m, v)
	r.reportMetrics(s, v)
	return nil
}

// correct puts back what others changed, unless that has become a quarrel: then
// only what is too much for the pods goes, and the rest waits.
func (r *Router) correct(ctx context.Context, s *situation, m *memory, v verdict, target virtualservice.Target) (time.Duration, error) {
	ours, err := r.stillOurs(ctx, s, m, r.anotherWrote(s))
	if err != nil || !ours {
		return notNow, err
	}
	now := r.clock.Now()
	if wait := m.drift.wait(now); wait > 0 {
		return wait, r.lower(ctx, s, m, v)
	}
	changes := s.changes(target)
	if err := r.writeTarget(ctx, s, m, target); err != nil {
		return 0, err
	}
	r.reportDrift(s, m, "VirtualService", changes)
	return 0, nil
}

// relabel puts the subsets back to what the last UpdateHash brought about, and
// drops those of ended experiments. moved tells that labels were written.
func (r *Router) relabel(ctx context.Context, s *situation, m *memory) (moved bool, err error) {
	if s.rule == nil || m.labelled == (hashes{}) {
		return false, nil
	}
	routed, err := s.routed()
	if err != nil {
		return false, err
	}
	if s.labelledAs(routed, m.labelled) && s.hasSubsets() {
		if len(r.unused(s, m)) == 0 {
			return false, nil
		}
		return false, r.writeLabels(ctx, s, m, hashes{})
	}
	if m.drift.wait(r.clock.Now()) > 0 {
		return false, nil
	}
	if ours, err := r.stillOurs(ctx, s, m, r.anotherLabelled(s)); err != nil || !ours {
		return false, err
	}
	if err := r.moveLabels(ctx, s, m, m.labelled); err != nil {
		return false, err
	}
	r.reportDrift(s, m, "DestinationRule", []string{s.rule.Namespace + "/" + s.rule.Name + ": subset labels"})
	return true, nil
}

// stillOurs asks, before anything is put back, whether it is this process's to
// put back: another process of the plugin may have taken over, and a Rollout that
// was deleted, or moved to another traffic router, is not called for any more
// without a word. One that has changed since the last call is left to the
// controller: it is about to call, or it calls another process.
func (r *Router) stillOurs(ctx context.Context, s *situation, m *memory, anotherWrote bool) (bool, error) {
	if anotherWrote {
		r.letGo(s, m, "another process of the plugin writes for it")
		return false, nil
	}
	ro, err := r.cluster.Rollout(ctx, s.ref.Namespace, s.ref.Name)
	if err != nil {
		return false, fmt.Errorf("reading Rollout %s/%s before a correction: %w", s.ref.Namespace, s.ref.Name, err)
	}
	if ro == nil || ro.UID != s.ref.UID {
		r.letGo(s, m, "it is gone")
		return false, nil
	}
	if ro.ResourceVersion != s.ref.ResourceVersion {
		return false, nil
	}
	if _, err := r.subjectOf(ro); err != nil {
		r.letGo(s, m, "its configuration does not name the plugin, or not as it should")
		return false, nil
	}
	return true, nil
}

// letGo ends the watch's work on a Rollout until the controller calls for it.
func (r *Router) letGo(s *situation, m *memory, why string) {
	m.asked, m.applied, m.labelled = false, nil, hashes{}
	r.logFor(s).Info("the watch leaves the Rollout alone until the controller calls for it", "why", why)
}

// still is what the pods of this moment leave of what was applied.
func (r *Router) still(s *situation, applied virtualservice.Target, v verdict) (virtualservice.Target, error) {
	now, err := r.target(s, applied.Canary)
	if err != nil {
		return now, err
	}
	if v.lowers(applied.Canary) || v.rescues(applied.Canary) {
		now.Canary = v.decision.Weight
	}
	now.Managed = slices.DeleteFunc(slices.Clone(now.Managed), func(route virtualservice.ManagedRoute) bool {
		return !slices.ContainsFunc(applied.Managed, func(other virtualservice.ManagedRoute) bool { return other.Name == route.Name })
	})
	now.Experiments = slices.DeleteFunc(slices.Clone(now.Experiments), func(e virtualservice.Experiment) bool {
		return !slices.ContainsFunc(applied.Experiments, func(other virtualservice.Experiment) bool { return other.Service == e.Service })
	})
	return now, nil
}

// lowers is true when that weight is more than the guard allows. Where neither
// side has pods there is nothing better than what is there.
func (v verdict) lowers(weight int32) bool {
	return v.enforced && v.decision.Capped() && v.decision.Reason != guard.ReasonNoPods && v.decision.Weight < weight
}

// rescues is true when the stable has lost its last pod and the canary may have
// more than that weight. It is the one case in which the watch raises, and only as
// far as the controller has asked: the rest would go to nobody.
func (v verdict) rescues(weight int32) bool {
	d := v.decision
	return v.enforced && v.pin == nil && d.Stable.Available <= 0 && d.Canary.Available > 0 && d.Weight > weight
}

// anotherWrote tells whether routes that are not as this process left them were
// written by the plugin all the same: by the process of another leader.
func (r *Router) anotherWrote(s *situation) bool {
	return slices.ContainsFunc(s.services, func(vs *virtualservice.VirtualService) bool {
		return vs.Ours && !r.own.wrote("VirtualService", vs.Namespace, vs.Name, vs.ResourceVersion)
	})
}

// anotherLabelled is to the DestinationRule what anotherWrote is to VirtualServices.
func (r *Router) anotherLabelled(s *situation) bool {
	return s.rule.Ours && !r.own.wrote("DestinationRule", s.rule.Namespace, s.rule.Name, s.rule.ResourceVersion)
}

// changes are what bringing the VirtualServices to the target changes, in words.
func (s *situation) changes(target virtualservice.Target) []string {
	var texts []string
	for i, vs := range s.services {
		_, changes, _ := s.patch(vs, i, target) // an error comes back from the write
		for _, change := range changes {
			texts = append(texts, fmt.Sprintf("%s/%s: %s", vs.Namespace, vs.Name, change))
		}
	}
	return texts
}

// reportDrift tells of one correction, and once of a quarrel.
func (r *Router) reportDrift(s *situation, m *memory, kind string, changes []string) {
	what := kind + " " + strings.Join(changes, ", ")
	r.cluster.Event(s.ref, true, EventDriftCorrected, what+": put back what somebody else had changed")
	r.logFor(s).Warn("drift corrected", "kind", kind, "changes", changes)
	r.options.Recorder.DriftCorrected(kind)
	if m.drift.note(r.clock.Now()) {
		r.cluster.Event(s.ref, true, EventDriftContested, fmt.Sprintf(
			"%s was changed by somebody else more than %d times within %s: corrections now wait %s and more; let the other writer ignore the weights, the hash labels and the managed routes (docs/gitops.md)",
			what, driftMost, driftWindow, driftPause))
	}
}

// errorAfter is the first of two errors.
func errorAfter(first, second error) error {
	if first != nil {
		return first
	}
	return second
}
