package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

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
	// silence is after how long without a call for a Rollout the watch asks whether
	// it is still there before it lowers anything.
	silence = time.Minute
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

// heal is one look of the watch at one Rollout. First it takes from the canary what
// its pods cannot serve, which needs nobody's leave. Then it puts back what others
// changed in the routes, labels and subsets that are ours; it never gives the canary
// more than the last call of the controller brought about, but where the stable has
// no pod left. again is when to look anew, 0 for not before something changes.
func (r *Router) heal(ctx context.Context, s *situation, m *memory) (again time.Duration, err error) {
	v := r.judge(s, m, m.desired)
	relieved, err := r.relieve(ctx, s, m, v)
	if err != nil || relieved || s.broken != nil {
		return 0, errors.Join(err, s.broken) // the write itself brings the next look
	}
	if m.applied == nil {
		return 0, nil
	}
	again, moved, labelErr := r.relabel(ctx, s, m)
	if moved || m.applied == nil {
		return again, labelErr // the weights are judged by the new labels, or by nobody
	}
	waits, err := r.reroute(ctx, s, m, v)
	return earlier(again, waits), errors.Join(labelErr, err)
}

// earlier is the first of two times to look anew, of which 0 is never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// askedLately asks the API server whether the Rollout is still ours when the
// controller has not called for it for a while: one that was deleted, or moved to
// another router, is not called for any more without a word. No answer is a yes,
// since what waits for it is pods that cannot serve.
func (r *Router) askedLately(ctx context.Context, s *situation, m *memory) bool {
	if r.clock.Now().Sub(m.lastCall) < silence {
		return true
	}
	ro, err := r.cluster.Rollout(ctx, s.ref.Namespace, s.ref.Name)
	return err != nil || r.oursBy(ro, s, m)
}

// oursBy tells whether a Rollout as it was read, nil for none, is still the one that
// this router was called for, and lets go of it if not.
func (r *Router) oursBy(ro *v1alpha1.Rollout, s *situation, m *memory) bool {
	why := ""
	if ro == nil || ro.UID != s.ref.UID {
		why = "it is gone"
	} else if _, err := r.subjectOf(ro); err != nil {
		why = "its configuration does not name the plugin, or not as it should"
	}
	if why == "" {
		return true
	}
	m.asked, m.applied, m.labelled = false, nil, hashes{}
	r.logFor(s).Info("the watch leaves the Rollout alone until the controller calls for it", "why", why)
	return false
}

// reroute puts back what others changed in the routes, unless that has become a
// quarrel: then it waits.
func (r *Router) reroute(ctx context.Context, s *situation, m *memory, v verdict) (time.Duration, error) {
	before := keptIn(s, *m.applied)
	target := r.still(s, before, v)
	if s.holds(target) {
		return s.lookForStable(m), nil
	}
	drifted := !s.holds(before)
	if drifted {
		if wait := m.drift.wait(r.clock.Now()); wait > 0 {
			return wait, nil
		}
		if ours, err := r.stillOurs(ctx, s, m, r.anotherWrote(s, target)); err != nil || !ours {
			return notNow, err
		}
	}
	changes := s.changes(target)
	if err := r.writeAll(ctx, s, m, target); err != nil {
		return 0, err
	}
	m.applied = &target
	if drifted {
		r.reportDrift(s, m, "VirtualService", changes)
	}
	r.reportCap(s, m, v)
	r.reportMetrics(s, v)
	return 0, nil
}

// relabel puts the subsets back to what the last UpdateHash brought about, and
// drops those of ended experiments. moved tells that labels were written. A pin
// leaves all but the weight to the operator.
func (r *Router) relabel(ctx context.Context, s *situation, m *memory) (again time.Duration, moved bool, err error) {
	if !s.bySubsets() || m.labelled == (hashes{}) || s.isPinned() {
		return 0, false, nil
	}
	if s.labelledAs(m.labelled) && s.hasSubsets() {
		if len(r.unused(s, m)) == 0 {
			return 0, false, nil
		}
		return 0, false, r.writeLabels(ctx, s, m, make([]hashes, len(s.rules)))
	}
	if wait := m.drift.wait(r.clock.Now()); wait > 0 {
		return wait, false, nil
	}
	if ours, err := r.stillOurs(ctx, s, m, r.anotherLabelled(s)); err != nil || !ours {
		return notNow, false, err
	}
	drifted := s.mislabelled(m.labelled)
	if err := r.moveLabels(ctx, s, m, m.labelled); err != nil {
		return 0, false, err
	}
	r.reportDrift(s, m, "DestinationRule", drifted)
	return watchBusy, true, nil
}

func (s *situation) isPinned() bool { return s.pin != nil || s.pinErr != nil }

// stillOurs asks, before anything is put back, whether it is this process's to
// put back. Where another process of the plugin has written, the new leader's, this
// one keeps nothing up until it is called again. A Rollout that the controller has
// moved on with since the last call is left to the controller: it is about to call,
// or it calls another process.
func (r *Router) stillOurs(ctx context.Context, s *situation, m *memory, anotherWrote bool) (bool, error) {
	if anotherWrote {
		m.applied, m.labelled = nil, hashes{}
		r.logFor(s).Info("another process of the plugin writes for the Rollout; this one puts nothing back until it is called for it")
		return false, nil
	}
	ro, err := r.cluster.Rollout(ctx, s.ref.Namespace, s.ref.Name)
	if err != nil {
		return false, fmt.Errorf("reading Rollout %s/%s before a correction: %w", s.ref.Namespace, s.ref.Name, err)
	}
	if !r.oursBy(ro, s, m) {
		return false, nil
	}
	now, err := r.subjectOf(ro)
	return err == nil && now.sameAs(m.subject), err
}

// still is what the pods of this moment leave of what was applied.
func (r *Router) still(s *situation, applied virtualservice.Target, v verdict) virtualservice.Target {
	now := r.target(s, applied.Canary)
	switch {
	case v.lowers(applied.Canary) || v.rescues(applied.Canary):
		now.Canary = v.decision.Weight
	case s.stableFresh == "" && v.returns(applied.Canary):
		now.Canary = v.next
	}
	now.Managed, now.Experiments = commonRoutes(now.Managed, applied.Managed), commonExperiments(now.Experiments, applied.Experiments)
	if s.isPinned() {
		now.Managed, now.Experiments = commonRoutes(now.Managed, s.presentRoutes(v)), s.present(now.Experiments)
		now.Canary = min(now.Canary, s.written) // what the operator has taken away by hand stays away
	}
	return now
}

// lowers is true when that weight is more than the guard allows. Where neither
// side has pods there is nothing better than what is there.
func (v verdict) lowers(weight int32) bool {
	return v.enforced && v.decision.Capped() && v.decision.Reason != guard.ReasonNoPods && v.decision.Weight < weight
}

// returns is true when the traffic can go back to the stable after a promotion, which
// SetWeight has left to the watch.
func (v verdict) returns(weight int32) bool {
	return v.enforced && v.pin == nil && v.facts.SameHash && v.next < weight
}

// lookForStable is when to look anew for that, 0 where it is not due.
func (s *situation) lookForStable(m *memory) time.Duration {
	if s.stableFresh != "" && m.applied != nil && m.desired < m.applied.Canary {
		return freshPoll
	}
	return 0
}

// rescues is true when the stable has lost its last pod and the canary may have
// more than that weight. It is the one case in which the watch raises, and only as
// far as the controller has asked: the rest would go to nobody.
func (v verdict) rescues(weight int32) bool {
	d := v.decision
	return v.enforced && v.pin == nil && d.Stable.Available <= 0 && d.Canary.Available > 0 && d.Weight > weight
}

// writtenByAnother tells whether another process of the plugin was the last to change
// the routes of one of the VirtualServices.
func (r *Router) writtenByAnother(s *situation) bool {
	return slices.ContainsFunc(s.services, func(vs *virtualservice.VirtualService) bool {
		return len(vs.Ours) > 0 && !r.own.wrote("VirtualService", vs.Namespace, vs.Name, vs.ResourceVersion)
	})
}

// anotherWrote tells whether one of the VirtualServices that are not as they should
// be was written by the plugin all the same: by the process of another leader.
func (r *Router) anotherWrote(s *situation, target virtualservice.Target) bool {
	for i, vs := range s.services {
		routes, err := vs.Select(s.selection(s.wants[i]), s.split)
		if err != nil || !vs.LastChangedByUs(routes) || r.own.wrote("VirtualService", vs.Namespace, vs.Name, vs.ResourceVersion) {
			continue
		}
		if patch, _, err := s.patch(i, target); err != nil || len(patch) > 0 {
			return true
		}
	}
	return false
}

// anotherLabelled is to DestinationRules what anotherWrote is to VirtualServices.
func (r *Router) anotherLabelled(s *situation) bool {
	return slices.ContainsFunc(s.rules, r.labelledByAnother)
}

func (r *Router) labelledByAnother(x rule) bool {
	return x.Ours && !r.own.wrote("DestinationRule", x.Namespace, x.Name, x.ResourceVersion)
}

// changes are what bringing the VirtualServices to the target changes, in words.
func (s *situation) changes(target virtualservice.Target) []string {
	var texts []string
	for i, vs := range s.services {
		_, changes, _ := s.patch(i, target) // an error comes back from the write
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
			"put back more than %d times within %s, last %s: somebody else writes the same fields; corrections now wait %s and more. Let the other writer ignore the weights, the hash labels and the managed routes (gitops.md of the plugin's documentation)",
			driftMost, driftWindow, what, driftPause))
	}
}
