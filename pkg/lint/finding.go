package lint

import (
	"cmp"
	"slices"
)

// Finding is one thing that is, or may become, wrong in one place.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Object is "Kind namespace/name"; empty where the input could not be read.
	Object string `json:"object,omitempty"`
	// File and Line say where the field stands, or the nearest part of its path that
	// is there. Line counts from 1; both are empty for objects of a cluster.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Field is the path, as in spec.strategy.canary.steps[2].setWeight.
	Field string `json:"field,omitempty"`
	// Message is what stands there.
	Message string `json:"message"`
	// Consequence is what will happen, Remedy what to write instead; both hold for all
	// findings of the code.
	Consequence string `json:"consequence,omitempty"`
	Remedy      string `json:"remedy,omitempty"`
}

// Report is what Run has found. The order does not depend on that of the input's
// files but for their names.
type Report struct {
	Findings []Finding `json:"findings"`
	// Notes are what could not be checked, each once.
	Notes []string `json:"notes,omitempty"`
	// Missing are the objects that were asked for and are not in the input. Whoever can
	// read more may add them and judge again; each round may ask for more.
	Missing []Ref `json:"-"`
	// Rollouts is how many Rollouts were judged, Ignored how many findings were
	// suppressed.
	Rollouts int `json:"rollouts"`
	Ignored  int `json:"ignored,omitempty"`
}

// Ref names an object.
type Ref struct{ Group, Kind, Namespace, Name string }

// Worst is the highest severity among the findings; 0 if there are none.
func (r Report) Worst() Severity {
	var worst Severity
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// sorted orders findings by place, and drops those that were found twice.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(findings)
}
