package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

var atLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// fault gives a parser's error the line of the file.
func (d document) fault(err error) fault {
	what := strings.TrimPrefix(err.Error(), atLine.FindString(err.Error()))
	message := "not valid YAML: " + what
	if jsonIn(d.text) >= 0 && strings.Contains(what, "<document start>") {
		message += "; several JSON texts in one file need a line with --- between them"
	}
	return fault{line: d.before + min(d.lineOf(what), lastLine(d.text)), message: message}
}

func lastLine(text []byte) int {
	return 1 + bytes.Count(bytes.TrimSpace(text), []byte("\n")) + leading(text)
}

// leading are the line ends before the first character.
func leading(text []byte) int {
	return bytes.Count(text[:len(text)-len(bytes.TrimLeft(text, " \t\r\n"))], []byte("\n"))
}

// jsonIn is where a text begins that begins as an object of JSON does, -1 if none does.
func jsonIn(text []byte) int {
	at := 0
	for line := range bytes.Lines(text) {
		if !blank(line) {
			break
		}
		at += len(line)
	}
	rest, found := bytes.CutPrefix(bytes.TrimSpace(text[at:]), []byte("{"))
	if !found || !bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`"`)) {
		return -1
	}
	return at
}

// jsonLine is where a text that is to be JSON is none, 0 if it is.
func jsonLine(text []byte, at int) int {
	var wrong *json.SyntaxError
	if !errors.As(json.Unmarshal(text[at:], new(any)), &wrong) {
		return 0
	}
	return 1 + bytes.Count(text[:at+max(int(wrong.Offset)-1, 0)], []byte("\n"))
}

// lineOf is where in the document an error is.
func (d document) lineOf(what string) int {
	begins := func(begin string) bool { return strings.HasPrefix(what, begin) }
	if slices.ContainsFunc(misplaced, begins) && len(d.text) <= mostSought {
		return d.firstWith(what)
	}
	if at := jsonIn(d.text); at >= 0 {
		if line := jsonLine(d.text, at); line > 0 {
			return line
		}
	}
	// The parser takes a first line for none, and names another one or none at all: with
	// an empty line in front there is no mistake in the first.
	_, _, err := decode(append([]byte("\n"), d.text...))
	if err == nil {
		return 1
	}
	found := atLine.FindStringSubmatch(err.Error())
	if len(found) < 2 || found[1] == "" {
		return 1
	}
	line, _ := strconv.Atoi(found[1])
	if !slices.ContainsFunc(early, begins) {
		line-- // counted from 1
	}
	return linesOf(d.text).at(max(line, 1))
}

// misplaced are the errors for which the parser names no line, or that of the beginning
// of what surrounds the mistake. What stands before the mistake is read without them.
var misplaced = []string{"unknown anchor ", "control characters are not allowed", "did not find expected key", "did not find expected '-' indicator"}

// early are the errors for which the parser counts lines from 0; from 1 for all others.
var early = []string{
	"did not find expected ',' or ", "did not find expected key", "did not find expected '-' indicator", "did not find expected node content",
	"did not find expected <", "found duplicate %", "found incompatible YAML document", "found undefined tag handle",
}

// mostSought bounds what is parsed again and again to find a line.
const mostSought = 2 << 20

// firstWith is the first line up to which the document has this error: the parser goes
// from the front to the back, and stops at the first.
func (d document) firstWith(what string) int {
	var ends []int
	for at, b := range d.text {
		if b == '\n' {
			ends = append(ends, at+1)
		}
	}
	return 1 + sort.Search(len(ends), func(i int) bool {
		_, _, err := decode(d.text[:ends[i]])
		return err != nil && strings.HasSuffix(err.Error(), what)
	})
}

// lines tells the lines of a file, which end with a line feed, from those of YAML 1.1,
// which end with a carriage return or a separator of Unicode as well. It is nil where
// they are the same.
type lines []int

func linesOf(text []byte) lines {
	var starts lines
	same, line := true, 1
	for at := 0; at < len(text); at++ {
		size, feed := breakAt(text[at:])
		if size == 0 {
			continue
		}
		if starts == nil {
			starts = lines{0, 1}
		}
		if feed {
			line++
		}
		same = same && feed
		starts = append(starts, line)
		at += size - 1
	}
	if same {
		return nil
	}
	return starts
}

// breakAt is the length of the line break that a text begins with, 0 if it begins with
// none, and whether it ends a line of the file.
func breakAt(text []byte) (size int, feed bool) {
	switch {
	case text[0] == '\n':
		return 1, true
	case text[0] == '\r' && len(text) > 1 && text[1] == '\n':
		return 2, true
	case text[0] == '\r':
		return 1, false
	}
	for _, separator := range []string{"\u0085", "\u2028", "\u2029"} {
		if text[0] == separator[0] && bytes.HasPrefix(text, []byte(separator)) {
			return len(separator), false
		}
	}
	return 0, false
}

// at is the line of the file for one of YAML, both from 1.
func (l lines) at(line int) int {
	if l == nil || line < 1 {
		return line
	}
	return l[min(line, len(l)-1)]
}
