package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/docs/markdown"
)

// written is a page with the text that it was read from.
type written struct {
	markdown.Page
	fences []markdown.Fence
	lines  []string
	code   []bool // by line: inside a fence, or the fence itself
}

// layOut reads a page. The error names a marker that says nothing.
func layOut(path, text string) (written, error) {
	w := written{Page: markdown.Parse(path, text), lines: strings.Split(text, "\n")}
	var err error
	if w.fences, err = w.Page.Fences(); err != nil {
		return w, err
	}
	w.code = make([]bool, len(w.lines))
	for _, f := range w.fences {
		for i := opening(f); i <= min(closing(f), len(w.lines)-1); i++ {
			w.code[i] = true
		}
	}
	return w, nil
}

// opening is the index of the line with which a fence begins.
func opening(f markdown.Fence) int {
	number, err := strconv.Atoi(f.At[strings.LastIndex(f.At, ":")+1:])
	if err != nil {
		panic(fmt.Sprintf("package markdown gives a place without a line: %s", f.At))
	}
	return number - 1
}

// closing is the index of the line with which it ends; beyond the page's last line if
// there is none.
func closing(f markdown.Fence) int { return opening(f) + 1 + strings.Count(f.Body, "\n") }

// allWritten are all pages that can be read.
func allWritten(t *testing.T) []written {
	t.Helper()
	texts := read(t, ".md")
	var all []written
	for _, page := range pages(t) {
		w, err := layOut(page.Path, texts[filepath.Join("..", page.Path)])
		if err != nil {
			t.Error(err)
			continue
		}
		all = append(all, w)
	}
	return all
}

var codeInLine = regexp.MustCompile("`+[^`]*`+")

// prose are the lines without all code; those of a fence are empty.
func (w written) prose() []string {
	prose := make([]string, len(w.lines))
	for i, line := range w.lines {
		if !w.code[i] {
			prose[i] = strings.TrimRight(codeInLine.ReplaceAllString(line, "`"), "\r")
		}
	}
	return prose
}

// at names a line for people.
func (w written) at(i int) string { return fmt.Sprintf("%s:%d", w.Path, i+1) }

func TestEveryFenceHasALanguageThatIsChecked(t *testing.T) {
	for _, w := range allWritten(t) {
		for _, fault := range w.fenceFaults() {
			t.Error(fault)
		}
	}
}

// whatToWrite is for whoever wrote another word behind a fence.
const whatToWrite = "write ```sh for commands and ```yaml for YAML, which tests read and run, and ```text or no word for what a program prints"

// fenceFaults are the fences of which nobody would notice that they are wrong.
func (w written) fenceFaults() []string {
	var faults []string
	for _, f := range w.fences {
		for _, fault := range languageFaults(f) {
			faults = append(faults, f.At+": "+fault)
		}
		if end := closing(f); end >= len(w.lines) || strings.Trim(w.lines[end], " `~\r") != "" || strings.Trim(w.lines[end], " \r") == "" {
			faults = append(faults, f.At+": the fence is never closed")
		}
	}
	for i, line := range w.prose() {
		if !w.code[i] && hiddenFence.MatchString(w.lines[i]) || preformatted.MatchString(line) {
			faults = append(faults, w.at(i)+": no test sees a block here: begin the fence on a line of its own, outside of quotations, and use no <pre>")
		}
	}
	return faults
}

var (
	// hiddenFence stands behind the sign of a quotation or a list.
	hiddenFence  = regexp.MustCompile("^\\s*(?:>|[-*+]|\\d+[.)])\\s*(?:[>-]\\s*)*(?:`{3,}|~{3,})[\\w-]*\\s*$")
	preformatted = regexp.MustCompile(`(?i)<pre\b`)
)

// languageFaults judges the word behind a fence.
func languageFaults(f markdown.Fence) []string {
	switch f.Language {
	case "yaml":
		return nil
	case "sh":
		if f.File != "" {
			return []string{"commands run in the repository's root: write <!-- runnable --> alone"}
		}
		return nil
	case "", "text":
	default:
		return []string{fmt.Sprintf("no test reads a block of %q: %s", f.Language, whatToWrite)}
	}
	var faults []string
	if f.Kind != markdown.None {
		faults = append(faults, fmt.Sprintf("<!-- %s … --> does nothing above it: %s", f.Kind, whatToWrite))
	}
	for line := range strings.Lines(f.Body) {
		if isCommand(line) || isYAML.MatchString(line) {
			faults = append(faults, fmt.Sprintf("%q is not what a program prints: %s", strings.TrimSpace(line), whatToWrite))
		}
	}
	return faults
}

var isYAML = regexp.MustCompile(`^\s*(?:apiVersion|kind|metadata|spec):(?:\s|$)`)

// isCommand says whether a line of output looks as if it were to be typed.
func isCommand(line string) bool {
	commands := markdown.Commands(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
	return len(commands) > 0 && (isChecked(commands[0]) || isForeign(commands[0]))
}

func TestAFenceThatNoTestWouldReadIsFound(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"bash":                              {"```bash\nmake demo\n```", `"bash": write ` + "```sh"},
		"shell":                             {"```shell\nmake demo\n```", "```sh"},
		"console":                           {"```console\n$ make demo\n```", "```sh"},
		"bash that is marked to run":        {"<!-- runnable -->\n```bash\nfalse\n```", "no test reads"},
		"YAML in capitals":                  {"<!-- runnable -->\n```YAML\na: 1\n```", "```yaml"},
		"yml":                               {"<!-- runnable -->\n```yml\na: 1\n```", "```yaml"},
		"a word more behind the language":   {"```sh title\nmake demo\n```", "no test reads"},
		"a fence of tildes":                 {"~~~bash\nmake demo\n~~~", "no test reads"},
		"commands without a language":       {"```\nmake demo\n```", "not what a program prints"},
		"commands behind a prompt":          {"```text\n$ jq . x.json\n```", "not what a program prints"},
		"YAML without a language":           {"```\nkind: Rollout\n```", "not what a program prints"},
		"output that is marked to run":      {"<!-- runnable -->\n```text\nall fine\n```", "does nothing"},
		"output that is marked as fragment": {"<!-- fragment: of a log -->\n```\nall fine\n```", "does nothing"},
		"commands that run in a file":       {"<!-- runnable in x.yaml at spec -->\n```sh\ntrue\n```", "alone"},
		"a fence that is never closed":      {"```sh\nmake demo\n", "never closed"},
		"one closed by another kind":        {"```sh\nmake demo\n~~~\n", "never closed"},
		"a fence in a quotation":            {"> ```sh\n> make demo\n> ```", "no test sees"},
		"a fence behind a bullet":           {"- ```sh\n  make demo\n  ```\n", "no test sees"},
		"a block of HTML":                   {"<pre>\nmake demo\n</pre>", "no test sees"},
		"all that there may be": {"```sh\nmake demo\n```\n<!-- fragment: a part -->\n```yaml\nkind: Rollout\n```\n1. x\n\n   ```text\n" +
			"   Rollout shop/web\n   ```\n\n````\n┌─▶ kind\n```\n````\nText with ```code```.\n", ""},
	} {
		w, err := layOut("p.md", tc.text)
		if err != nil {
			t.Fatal(err)
		}
		wantFaults(t, name, w.fenceFaults(), tc.want)
	}
}

// wantFaults wants the text among the faults, or no fault if it is empty.
func wantFaults(t *testing.T, name string, faults []string, want string) {
	t.Helper()
	if all := strings.Join(faults, "\n"); (want == "") != (all == "") || !strings.Contains(all, want) {
		t.Errorf("%s: faults are %q, want %q among them", name, faults, want)
	}
}

func TestEveryCommentIsAMarkerOrAKnownNote(t *testing.T) {
	comments := 0
	for _, w := range allWritten(t) {
		for i, line := range w.prose() {
			if !isComment.MatchString(line) {
				continue
			}
			comments++
			if fault := w.commentFault(i, line); fault != "" {
				t.Errorf("%s: %s", w.at(i), fault)
			}
		}
	}
	if comments < 10 {
		t.Errorf("only %d comments were found", comments)
	}
}

var (
	// isComment also takes what was meant to be one.
	isComment = regexp.MustCompile(`<\s*!\s*[-–—]|(?:--|[–—])\s*>\s*$`)
	comment   = regexp.MustCompile(`^\s*<!--\s+(.*?)\s+-->\s*$`)
	isMarker  = regexp.MustCompile(`^(?:runnable|fragment)\b`)
	// notes are comments that ask for nothing. What the first group names has to be there.
	notes = []*regexp.Regexp{
		regexp.MustCompile(`^(?:begin|end) [\w-]+$`), // around what a program writes
		regexp.MustCompile(`^Written by [^.].*\.$`),
		regexp.MustCompile(`^The tests? (?:in|of) (\S+) .+\.$`), // of a block that has a test of its own
	}
)

// commentFault looks at the comment in a line: a mistake in a marker is seen by nobody
// else, as no reader sees comments, and what they do not ask for is not done.
func (w written) commentFault(i int, line string) string {
	found := comment.FindStringSubmatch(line)
	if found == nil {
		return "write a comment as <!-- text -->, alone in its line"
	}
	if isMarker.MatchString(found[1]) {
		if !w.aboveFence(i) {
			return fmt.Sprintf("<!-- %s --> marks nothing: put it directly above a fence that has no other marker", found[1])
		}
		return ""
	}
	for _, note := range notes {
		if of := note.FindStringSubmatch(found[1]); of != nil {
			if len(of) > 1 && len(root.all(of[1])) == 0 {
				return fmt.Sprintf("<!-- %s -->: there is no %s", found[1], of[1])
			}
			return ""
		}
	}
	return fmt.Sprintf("<!-- %s --> is no marker; is it a typing error? If it is a note, add its form to the list notes in docs/marks_test.go. %s", found[1], howToMark)
}

// aboveFence says whether only notes and empty lines stand between a line and a fence.
func (w written) aboveFence(i int) bool {
	for i++; i < len(w.lines) && !w.code[i]; i++ {
		line := strings.TrimSpace(w.lines[i])
		found := comment.FindStringSubmatch(line)
		if line != "" && (found == nil || isMarker.MatchString(found[1])) {
			return false
		}
	}
	return i < len(w.lines)
}

func TestACommentThatAsksForNothingIsFound(t *testing.T) {
	const block = "\n```sh\ntrue\n```\n"
	for name, tc := range map[string]struct{ text, want string }{
		"a typing error":                    {"<!-- runable -->" + block, "no marker"},
		"a typing error far from a fence":   {"<!-- fragmemt: why -->\n\nText.\n" + block, "no marker"},
		"a capital letter":                  {"<!-- Runnable -->" + block, "no marker"},
		"a marker too high up":              {"<!-- runnable -->\nText." + block, "marks nothing"},
		"a marker at the page's end":        {"```sh\ntrue\n```\n<!-- runnable -->\n", "marks nothing"},
		"two markers":                       {"<!-- fragment: why -->\n<!-- runnable -->" + block, "marks nothing"},
		"a marker over two lines":           {"<!-- runnable\n-->" + block, "alone in its line"},
		"text behind the marker":            {"<!-- runnable --> so:" + block, "alone in its line"},
		"a comment that is no comment":      {"<!- runnable -->" + block, "alone in its line"},
		"one that is never closed":          {"<!-- runnable ->" + block, "alone in its line"},
		"a space too much":                  {"< !-- runnable -->" + block, "alone in its line"},
		"a dash in place of two hyphens":    {"<!– runnable –>" + block, "alone in its line"},
		"a note on a test that is not here": {"<!-- The test in pkg/nosuch runs what follows. -->" + block, "no pkg/nosuch"},
		"markers and notes": {"<!-- Written by hand. -->\n<!-- begin x -->\n<!-- runnable -->\n<!-- The test in pkg/cli runs what follows. -->\n\n```sh\ntrue\n```\n" +
			"<!-- end x -->\n`<!-- any -->` 1 -> 2 <!\n```text\n<!-- what -->\n```\n", ""},
	} {
		w, err := layOut("p.md", tc.text)
		if err != nil {
			t.Fatal(err)
		}
		var faults []string
		for i, line := range w.prose() {
			if fault := w.commentFault(i, line); isComment.MatchString(line) && fault != "" {
				faults = append(faults, fault)
			}
		}
		wantFaults(t, name, faults, tc.want)
	}
}
