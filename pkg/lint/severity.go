package lint

import (
	"fmt"
	"slices"
)

// Severity is how bad a finding is. The order is that of the numbers.
type Severity int

// The severities.
const (
	// Info works, and is worth knowing.
	Info Severity = iota + 1
	// Warning works today, and will not under conditions that the check names.
	Warning
	// Error does not work: the plugin, the controller or Istio refuses it, or requests
	// go nowhere.
	Error
)

var severityNames = []string{Info: "info", Warning: "warning", Error: "error"}

// String is the word as it stands in output.
func (s Severity) String() string {
	if s < Info || s > Error {
		return fmt.Sprintf("severity %d", int(s))
	}
	return severityNames[s]
}

// MarshalText makes a Severity a word in JSON and YAML.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSeverity reads the word. The error names those that there are.
func ParseSeverity(word string) (Severity, error) {
	if at := slices.Index(severityNames, word); at >= int(Info) {
		return Severity(at), nil
	}
	return 0, fmt.Errorf("%q is none of error, warning, info", word)
}
