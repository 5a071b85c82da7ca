package config

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxProblems bounds one report. A block of the size that the API server lets
// through can hold a hundred thousand unknown fields, and each report goes into
// the controller's log and into an Event.
const maxProblems = 50

// maxShown bounds how many bytes of a faulty value are repeated in a report.
const maxShown = 80

// Error is everything that is wrong with one Rollout's configuration. Only a
// change of the Rollout or of the plugin's flags can cure it, so the call is not
// worth repeating on the same Rollout.
type Error struct {
	// Namespace and Name are the Rollout's.
	Namespace, Name string
	// Problems is never empty. The order is that of the Rollout's fields, unknown
	// fields first at each level.
	Problems field.ErrorList
	// Omitted counts the problems beyond the first 50.
	Omitted int
}

// Error returns one line: the Rollout, then each problem with its full field path
// and what to do.
func (e *Error) Error() string {
	parts := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		parts = append(parts, p.Error())
	}
	if e.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", e.Omitted))
	}
	return fmt.Sprintf("Rollout %s/%s: %s", e.Namespace, e.Name, strings.Join(parts, "; "))
}

// Unwrap gives errors.As and errors.Is each single problem, a *field.Error.
func (e *Error) Unwrap() []error {
	all := make([]error, 0, len(e.Problems))
	for _, p := range e.Problems {
		all = append(all, p)
	}
	return all
}

// checker gathers problems. The zero value is ready; one checker serves one call.
type checker struct {
	problems field.ErrorList
	omitted  int
}

// add keeps the problem, or counts it where the report is full.
func (c *checker) add(p *field.Error) {
	if len(c.problems) == maxProblems {
		c.omitted++
		return
	}
	c.problems = append(c.problems, p)
}

// show shortens a value for a report, at a character's border.
func show(value string) string {
	if len(value) <= maxShown {
		return value
	}
	return strings.ToValidUTF8(value[:maxShown], "") + fmt.Sprintf("… (%d bytes)", len(value))
}
