package guard

import "fmt"

// Message is the decision in one sentence with its numbers, for an Event, a log line or the controller's status:
//
//	canary held at 10 of 100: 2 of 20 replicas available
//
// The numbers after the verb are Weight and Desired.
func (d Decision) Message() string {
	return fmt.Sprintf("canary %s %d of %d: %s", d.verb(), d.Weight, d.Desired, d.why())
}

// String is Message followed by the reason's code.
func (d Decision) String() string {
	return fmt.Sprintf("%s (%s)", d.Message(), d.Reason)
}

func (d Decision) verb() string {
	switch {
	case !d.Capped():
		return "at"
	case d.Reason == ReasonNoPods:
		return "left at"
	default:
		return "held at"
	}
}

func (d Decision) why() string {
	switch d.Reason {
	case ReasonNothingAsked:
		return "no traffic asked for"
	case ReasonSameHash:
		return "canary and stable are one revision"
	case ReasonNoReplicasAsked:
		return "spec.replicas is 0"
	case ReasonNoPods:
		return "neither canary nor stable has an available replica"
	case ReasonEqualLoad:
		return fmt.Sprintf("%s, as busy as the %d of the stable", d.counted(), d.Stable.Available)
	case ReasonEnoughPods:
		return d.counted() + d.threshold()
	default:
		return d.counted()
	}
}

func (d Decision) counted() string {
	return fmt.Sprintf("%d of %d replicas available", max(0, d.Canary.Available), d.Need)
}

// threshold explains a release with fewer pods than needed.
func (d Decision) threshold() string {
	if d.Canary.Available >= d.Need {
		return ""
	}
	return fmt.Sprintf(", %d are enough by replicaProgressThreshold", d.Enough)
}
