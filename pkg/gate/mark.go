package gate

import (
	"strings"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// Annotation on a Rollout tells which revision the gate has rolled back, and why. With
// status.abort it is one of the two marks of a rollback.
const Annotation = "istio.argoproj-labs.io/canary-rolled-back"

// Phase is how far a rollback has come.
type Phase string

// The phases. A mark of another revision, and none at all, is "".
const (
	// Aborting: decided; the Rollout may not have been aborted yet.
	Aborting Phase = "aborting"
	// Aborted: the Rollout has been aborted. If it is not any more, a person has retried.
	Aborted Phase = "aborted"
)

// Mark is what the annotation says about one revision.
type Mark struct {
	Phase Phase
	// Text is the reason with its numbers.
	Text string
}

// MarkOf reads the mark for a pod-template hash. A word for the phase that is none of
// ours counts as aborted: nothing is then begun because of it.
func MarkOf(ro *v1alpha1.Rollout, hash string) Mark {
	marked, rest, _ := strings.Cut(ro.Annotations[Annotation], " ")
	if marked == "" || marked != hash {
		return Mark{}
	}
	phase, text, _ := strings.Cut(rest, ": ")
	if Phase(phase) == Aborting {
		return Mark{Aborting, text}
	}
	return Mark{Aborted, text}
}

// Value is the annotation's value, as in
// "6c8b7d9f5 aborted: rolled back from 25: 5xx 4.2 % over 1 %".
func (m Mark) Value(hash string) string { return hash + " " + string(m.Phase) + ": " + m.Text }
