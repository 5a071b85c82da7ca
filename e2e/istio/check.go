package istio

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Finding is one sentence of Istio's about an object.
type Finding struct {
	// Object is "Kind namespace/name".
	Object string
	// Text is what Istio says, on one line.
	Text string
	// Warning is true when the object passes all the same.
	Warning bool
}

// String is the line that cmd/validate prints.
func (f Finding) String() string {
	if f.Warning {
		return fmt.Sprintf("%s: warning: %s", f.Object, f.Text)
	}
	return fmt.Sprintf("%s: %s", f.Object, f.Text)
}

// Report sums up what was checked. The zero value is ready; one Report may take
// any number of files, one after the other.
type Report struct {
	// Objects is how many objects were judged, Refused how many Istio refuses.
	Objects, Refused int
	// Excused is how many Istio refuses that it refused before the write, too.
	// They are not in Refused.
	Excused int
	// Findings has each sentence once, in the order of first appearance.
	Findings []Finding

	seen map[Finding]bool
}

// write is a line with what an object was before a write and what it is after.
type write struct {
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// Check reads written objects, one JSON value a line, and adds Istio's verdicts
// to the report. A line is an object, or the pair
//
//	{"before": object, "after": object}
//
// of which "after" has to be accepted only if "before" was: a test may begin with
// an object that Istio refuses. Empty lines are skipped. The error is about the
// text, names the line and ends the check; a refused object is none.
func (r *Report) Check(lines io.Reader) error {
	reader := bufio.NewReader(lines)
	for number := 1; ; number++ {
		line, err := reader.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			if err := r.line([]byte(text)); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
}

func (r *Report) line(text []byte) error {
	var pair write
	if err := json.Unmarshal(text, &pair); err != nil {
		return fmt.Errorf("%w: %w", ErrNotJudged, err)
	}
	if pair.After == nil {
		pair.After = text
	}
	o, err := decode(pair.After)
	if err != nil {
		return err
	}
	accepted := true
	if pair.Before != nil {
		_, err := Validate(pair.Before)
		if errors.Is(err, ErrNotJudged) {
			return fmt.Errorf("before: %w", err)
		}
		accepted = err == nil
	}
	r.judge(o, accepted)
	return nil
}

func (r *Report) judge(o Object, acceptedBefore bool) {
	r.Objects++
	warnings, err := o.validate()
	for _, warning := range warnings {
		r.add(Finding{Object: o.String(), Text: oneLine(warning), Warning: true})
	}
	switch {
	case err == nil:
	case acceptedBefore:
		r.Refused++
		r.add(Finding{Object: o.String(), Text: oneLine(err.Error())})
	default:
		r.Excused++
		r.add(Finding{Object: o.String(), Text: "refused, as before the write: " + oneLine(err.Error()), Warning: true})
	}
}

func (r *Report) add(f Finding) {
	if r.seen[f] {
		return
	}
	if r.seen == nil {
		r.seen = map[Finding]bool{}
	}
	r.seen[f] = true
	r.Findings = append(r.Findings, f)
}

// oneLine folds the lists that Istio's errors are printed as.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
