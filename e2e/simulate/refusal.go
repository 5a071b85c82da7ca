package simulate

import (
	"fmt"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// Refusal is the error of input that cannot be played. Playing it again cannot help: the
// files have to change first.
type Refusal struct{ Problems []Problem }

// Problem is one thing that keeps the input from being played.
type Problem struct {
	// File and Line say where; Line is 0 if that is not known.
	File string
	Line int
	// Object is "Kind namespace/name", Field the path in it; both may be empty.
	Object, Field string
	// Message is what stands there, Remedy what to write instead.
	Message, Remedy string
}

// Error lists all problems.
func (r *Refusal) Error() string {
	var b strings.Builder
	for i, p := range r.Problems {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// String is the place, what stands there, and in a second line what to do.
func (p Problem) String() string {
	var words []string
	for _, word := range []string{p.Object, p.Field} {
		if word != "" {
			words = append(words, word)
		}
	}
	text := p.Message
	if len(words) > 0 {
		text = strings.Join(words, " ") + ": " + text
	}
	if p.File != "" {
		text = fmt.Sprintf("%s:%d: %s", p.File, p.Line, text)
	}
	if p.Remedy != "" {
		text += "\n    Instead: " + p.Remedy
	}
	return text
}

// refuse is a refusal for one field of an object of the input.
func refuse(s lint.Source, field, message, remedy string) *Refusal {
	file, line := s.Place(field)
	return &Refusal{[]Problem{{File: file, Line: line, Object: s.String(), Field: field, Message: message, Remedy: remedy}}}
}

// unplayable are the codes of findings with which the controller or the plugin would
// only say the same error again and again. Others are what a person may well want to
// see played.
var unplayable = map[string]bool{
	"ARI0001": true, "ARI0003": true, "ARI0004": true, "ARI0005": true, "ARI0006": true, // input
	"ARI0101": true, "ARI0104": true, // the plugin's block and steps
	"ARI0202": true, "ARI0203": true, "ARI0204": true, "ARI0205": true, "ARI0206": true, "ARI0207": true, "ARI0208": true, "ARI0209": true, // routes
	"ARI0230": true, "ARI0302": true, "ARI0303": true, "ARI0304": true, "ARI0309": true, // managed routes, subsets, selectors
	"ARI0408": true, "ARI0409": true, "ARI0410": true, // what the controller rejects
}

// problemsOf are the findings that keep the input from being played.
func problemsOf(report lint.Report) []Problem {
	var problems []Problem
	for _, f := range report.Findings {
		if unplayable[f.Code] && f.Severity == lint.Error {
			problems = append(problems, Problem{File: f.File, Line: f.Line, Object: f.Object, Field: f.Field, Message: f.Message, Remedy: f.Remedy})
		}
	}
	return problems
}

// refusal is nil if there is no problem.
func refusal(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Refusal{problems}
}
