package virtualservice

import "fmt"

// Change is one thing that a patch does, for people.
type Change struct {
	// Route is the route that changes as Route.String gives it, or what else changes.
	Route string
	// From is what stood in the object, with 0 for an absent weight. From and To are
	// of our two destinations, and are zero if Did is set.
	From, To Weights
	// Did is what happens to Route where that is not a change of the two weights, as
	// in "destination host exp-a added with weight 15".
	Did string
}

// String is fit for an event: http[0] "primary" 100/0 -> 70/30.
func (c Change) String() string {
	if c.Did != "" {
		return c.Route + " " + c.Did
	}
	return fmt.Sprintf("%s %s -> %s", c.Route, c.From, c.To)
}

// did notes what is no change of the two weights.
func (e *edit) did(what, format string, args ...any) {
	e.changes = append(e.changes, Change{Route: what, Did: fmt.Sprintf(format, args...)})
}
