package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
)

// format is how a command prints what it has found.
type format string

const (
	table    format = "table"
	asJSON   format = "json"
	asYAML   format = "yaml"
	defaults        = string(table)
)

// parseFormat refuses what is none.
func parseFormat(word string) (format, error) {
	if f := format(word); slices.Contains([]format{table, asJSON, asYAML}, f) {
		return f, nil
	}
	return "", fmt.Errorf("-o %s: must be table, json or yaml", word)
}

// write prints a value as JSON or YAML, or has the table printed.
func (f format) write(out io.Writer, value any, asTable func(io.Writer)) error {
	var text bytes.Buffer
	switch f {
	case table:
		asTable(&text)
	default:
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(value); err != nil {
			return err
		}
		text = *bytes.NewBuffer(inspect.EscapeJSON(text.String()))
		if f == asYAML {
			raw, err := yaml.JSONToYAML(text.Bytes())
			if err != nil {
				return err
			}
			text = *bytes.NewBuffer(raw)
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

// Terminal tells whether colour is welcome there: on a terminal whose user has not
// said otherwise.
func Terminal(w io.Writer, env func(string) string) bool {
	file, ok := w.(*os.File)
	return ok && welcome(term.IsTerminal(int(file.Fd())), env)
}

func welcome(terminal bool, env func(string) string) bool {
	return terminal && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// paint colours a word, by ECMA-48.
func (p *Program) paint(word, colour string) string {
	if !p.Colour || colour == "" {
		return word
	}
	return "\x1b[" + colour + "m" + word + "\x1b[0m"
}

// wrap breaks a text into lines of at most width characters where it has blanks.
func wrap(text, indent string, width int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		length := len([]rune(word))
		switch {
		case i == 0:
		case used+1+length > width:
			b.WriteString("\n" + indent)
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += length
	}
	return b.String()
}
