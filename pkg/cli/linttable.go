package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// width is that of running text.
const width = 110

var colours = map[lint.Severity]string{lint.Error: "31", lint.Warning: "33", lint.Info: "36"}

// lintTable prints one paragraph for each finding: it is more than a row can hold.
func (p *Program) lintTable(out io.Writer, r lint.Report) {
	for _, f := range r.Findings {
		fmt.Fprintln(out, p.headline(f))
		if f.Field != "" {
			fmt.Fprintf(out, "    %s\n", oneLine(f.Field))
		}
		fmt.Fprintf(out, "    %s\n", wrap(printable(f.Message), "    ", width))
		fmt.Fprintf(out, "    Then:    %s\n", wrap(f.Consequence, "             ", width))
		fmt.Fprintf(out, "    Instead: %s\n\n", wrap(f.Remedy, "             ", width))
	}
	for _, note := range r.Notes {
		fmt.Fprintf(out, "note: %s\n", wrap(printable(note), "      ", width))
	}
	fmt.Fprintln(out, summary(r))
}

// headline is where, how bad, which code and which object.
func (p *Program) headline(f lint.Finding) string {
	var parts []string
	if f.File != "" {
		place := oneLine(f.File)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		parts = append(parts, place+":")
	}
	parts = append(parts, p.paint(f.Severity.String(), colours[f.Severity]), f.Code)
	if f.Object != "" {
		parts = append(parts, oneLine(f.Object))
	}
	return strings.Join(parts, " ")
}

// printable keeps what a file says, such as a name, from moving the cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// oneLine is printable for what stands in a line of its own: nobody's name makes another.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) && r != ' ' {
			return '?'
		}
		return r
	}, printable(text))
}

func summary(r lint.Report) string {
	counts := map[lint.Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
	}
	text := fmt.Sprintf("%s checked: %s, %s, %d info", plural(r.Rollouts, "Rollout"), plural(counts[lint.Error], "error"), plural(counts[lint.Warning], "warning"), counts[lint.Info])
	if r.Ignored > 0 {
		text += fmt.Sprintf(", %d suppressed", r.Ignored)
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
