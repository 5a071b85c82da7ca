package lint

import (
	"slices"
	"strings"
)

// Check is one thing that is looked for. Its texts hold for every finding of it.
type Check struct {
	// Code is stable: it is never given to another check.
	Code     string
	Severity Severity
	Title    string
	// Happens is what will happen, Instead what to write instead.
	Happens, Instead string
	// Not is when the check finds nothing although one might expect it to; may be empty.
	Not string
	// Elsewhere are the codes of Istio's and Kiali's analysis for the same thing, as in
	// "Istio IST0130"; may be empty.
	Elsewhere string

	// judge is nil for what is found while reading. native: it also holds for Rollouts
	// with the native router.
	// fields: it also holds for Rollouts that Istio does not route.
	// bounded: it is about other objects, of which there may be thousands for each of
	// thousands of Rollouts.
	judge                   func(*subject, tell)
	native, fields, bounded bool
}

// Annotated tells whether the annotation on an object suppresses the check. What is found
// while reading belongs to a file and not to an object.
func (c *Check) Annotated() bool { return c.judge != nil }

// tell reports a finding about a field of an object. It returns false if it did not, as
// the check is bounded and has told enough.
type tell func(o *object, field, format string, args ...any) bool

var checks = slices.Concat(inputChecks, configChecks, routeChecks, trafficChecks, managedChecks, labelChecks, stepChecks, ownerChecks)

// Checks are all checks in the order of their codes. The caller must not change them.
func Checks() []*Check { return checks }

// Lookup finds a check by its code, in upper or lower case.
func Lookup(code string) (*Check, bool) {
	at := slices.IndexFunc(checks, func(c *Check) bool { return strings.EqualFold(c.Code, code) })
	if at < 0 {
		return nil, false
	}
	return checks[at], true
}

func (c *Check) finding(object, file string, line int, field, message string) Finding {
	return Finding{
		Code: c.Code, Severity: c.Severity, Object: object, File: file, Line: line, Field: field,
		Message: message, Consequence: c.Happens, Remedy: c.Instead,
	}
}
