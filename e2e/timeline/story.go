package timeline

import (
	"fmt"
	"strings"
)

// shortHash is enough of a pod-template hash to tell two revisions apart.
const shortHash = 6

func short(hash string) string {
	if hash == "" {
		return "-"
	}
	return hash[:min(shortHash, len(hash))]
}

// note says in words what changed from one state to the next, empty when
// nothing did that a reader of a canary cares for.
func note(before, now State) string {
	e := now.Entry
	if e.Deleted {
		return fmt.Sprintf("%s %s deleted", e.Fact.Kind(), e.Name)
	}
	switch f := e.Fact.(type) {
	case Mark:
		return fmt.Sprintf("=== %s ===", e.Name)
	case Event:
		return fmt.Sprintf("%s: %s", f.Reason, oneLine(f.Message))
	case VirtualService:
		return fmt.Sprintf("VirtualService %s%s%s", e.Name, weightChange(before, now), by(e.Manager))
	case DestinationRule, Service:
		return fmt.Sprintf("%s %s%s%s", f.Kind(), e.Name, hashChange(before, now), by(e.Manager))
	case ReplicaSet:
		return podsChange(before.Pods[f.Hash], f)
	case Rollout:
		return rolloutChange(before.Rollout, f)
	default:
		return ""
	}
}

// oneLine keeps a message with line breaks from breaking the table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func by(manager string) string {
	if manager == "" {
		return ""
	}
	return " by " + manager
}

// weightChange tells the canary's side; the stable's stands in the table.
func weightChange(before, now State) string {
	if before.CanaryWeight == now.CanaryWeight && before.StableWeight == now.StableWeight {
		return ": weights unchanged"
	}
	return fmt.Sprintf(": canary %d -> %d", before.CanaryWeight, now.CanaryWeight)
}

func hashChange(before, now State) string {
	var parts []string
	if before.CanaryHash != now.CanaryHash {
		parts = append(parts, fmt.Sprintf("canary is now %s", short(now.CanaryHash)))
	}
	if before.StableHash != now.StableHash {
		parts = append(parts, fmt.Sprintf("stable is now %s", short(now.StableHash)))
	}
	if len(parts) == 0 {
		return ": hashes unchanged"
	}
	return ": " + strings.Join(parts, ", ")
}

// podsChange leaves the available pods out while they are just the ready ones.
func podsChange(before Pods, f ReplicaSet) string {
	now := f.Pods
	var parts []string
	add := func(what string, old, now int32) {
		if old != now {
			parts = append(parts, fmt.Sprintf("%s %d -> %d", what, old, now))
		}
	}
	add("size", before.Size, now.Size)
	add("ready", before.Ready, now.Ready)
	if before.Available != before.Ready || now.Available != now.Ready {
		add("available", before.Available, now.Available)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("ReplicaSet %s: %s", short(f.Hash), strings.Join(parts, ", "))
}

// rolloutChange leaves out conditions, counters and times, which change with
// every reconcile.
func rolloutChange(before, now Rollout) string {
	var parts []string
	add := func(changed bool, format string, args ...any) {
		if changed {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(before.Replicas != now.Replicas, "replicas %d -> %d", before.Replicas, now.Replicas)
	add(before.PodHash != now.PodHash, "revision is now %s", short(now.PodHash))
	add(before.StableRS != now.StableRS, "stable is now %s", short(now.StableRS))
	add(before.Current && !now.Current, "spec changed")
	add(before.DesiredWeight != now.DesiredWeight, "asked for %d", now.DesiredWeight)
	add(!before.Abort && now.Abort, "aborted")
	add(before.Phase != now.Phase || before.Message != now.Message, "%s", statement(now))
	if len(parts) == 0 {
		return ""
	}
	return "Rollout: " + strings.Join(parts, ", ")
}

// statement is the phase with the controller's own words for it.
func statement(r Rollout) string {
	if r.Message == "" {
		return orDefault(r.Phase, "no phase yet")
	}
	return r.Phase + " (" + oneLine(r.Message) + ")"
}
