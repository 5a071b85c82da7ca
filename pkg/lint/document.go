package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxBytes is the most that one file may have. A whole cluster's routing is a tenth
// of it.
const MaxBytes = 16 << 20

// document is one of the YAML documents of a file.
type document struct {
	text []byte
	// before is how many lines of the file stand before it.
	before int
}

// fault is why a text cannot be read; line is that of the file, 0 if it is not known.
type fault struct {
	line    int
	message string
}

func (f fault) Error() string { return f.message }

// textOf refuses what is no text.
func textOf(data []byte) ([]byte, error) {
	switch {
	case len(data) > MaxBytes:
		return nil, fault{message: fmt.Sprintf("%d bytes are too many: at most %d are read, split the file", len(data), MaxBytes)}
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return nil, fault{line: 1, message: "this is UTF-16 text: save it as UTF-8"}
	}
	at := bytes.IndexByte(data, 0)
	if at < 0 && !utf8.Valid(data) {
		at = invalidAt(data)
	}
	if at >= 0 {
		return nil, fault{line: 1 + bytes.Count(data[:at], []byte("\n")), message: fmt.Sprintf("byte %d is no UTF-8 text: this is no YAML or JSON file", at)}
	}
	return withoutMarks(data), nil
}

// withoutMarks cuts byte order marks at the beginnings of lines, where files that were
// put one behind the other leave them. Nothing else that YAML allows begins so.
func withoutMarks(data []byte) []byte {
	const mark = "\ufeff"
	data = bytes.TrimPrefix(data, []byte(mark))
	return bytes.ReplaceAll(data, []byte("\n"+mark), []byte("\n"))
}

func invalidAt(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// documents splits at the lines that separate documents, so that a fault in one of
// them does not hide the others.
func documents(text []byte) []document {
	var all []document
	start, startLine, line := 0, 0, 0
	add := func(end int) {
		if part := text[start:end]; !blank(part) {
			all = append(all, document{text: part, before: startLine})
		}
	}
	for at := 0; at < len(text); line++ {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		switch this := text[at:end]; {
		case marks(this, "---"):
			add(at)
			start, startLine = at, line
		case marks(this, "..."):
			add(at)
			start, startLine = end, line+1
		}
		at = end
	}
	add(len(text))
	return all
}

// hinted adds what a template needs, which is no YAML before it is rendered, and what the
// shortened texts of documentation are. command is how a person calls the program.
func (d document) hinted(err error, command string) error {
	var f fault
	switch {
	case !errors.As(err, &f):
		return err
	case bytes.Contains(d.text, []byte("{{")):
		f.message += "; it looks like a template: render it first, as in: helm template . | " + command + " lint -f -"
	case d.shortened() > 0:
		f.message += fmt.Sprintf("; in line %d three dots stand for something left out: write it out", d.before+d.shortened())
	}
	return f
}

// shortened is the first line that holds three dots only, further in than the mark of a
// document's end; 0 if there is none.
func (d document) shortened() int {
	line := 0
	for text := range bytes.Lines(d.text) {
		line++
		if bytes.Equal(bytes.TrimSpace(text), []byte("...")) {
			return line
		}
	}
	return 0
}

// marks tells a line that begins or ends a document.
func marks(line []byte, mark string) bool {
	rest, found := bytes.CutPrefix(line, []byte(mark))
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// blank tells a part that holds comments, directives and marks only.
func blank(part []byte) bool {
	for line := range bytes.Lines(part) {
		line = bytes.TrimSpace(line)
		if marks(line, "---") {
			line = bytes.TrimSpace(line[3:])
		}
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// parse returns the root of one document, with the lines of the file.
func (d document) parse() (root *yaml.Node, err error) {
	// The parser is somebody else's, and its input anybody's.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fault{line: d.before + 1, message: fmt.Sprintf("cannot be read as YAML: %v", r)}
		}
	}()
	node, more, err := decode(d.text)
	if err != nil {
		return nil, d.fault(err)
	}
	lines := linesOf(d.text)
	switch {
	case more != nil:
		return nil, fault{line: d.before + lines.at(more.Line), message: "a second text begins here: put a line with --- before it"}
	case node == nil || node.Kind != yaml.DocumentNode || len(node.Content) == 0:
		return nil, nil
	}
	d.shift(node.Content[0], lines)
	return node.Content[0], nil
}

// decode reads one document, nil if there is none. Two JSON texts, one after another,
// are no YAML, and the second must not be lost: it is more.
func decode(text []byte) (node, more *yaml.Node, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	node, more = &yaml.Node{}, &yaml.Node{}
	if err := decoder.Decode(node); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	if err := decoder.Decode(more); errors.Is(err, io.EOF) {
		return node, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	return node, more, nil
}

// shift counts lines from the start of the file. Each node is reached once: the
// content of an alias is not below it.
func (d document) shift(node *yaml.Node, lines lines) {
	node.Line = d.before + lines.at(node.Line)
	for _, below := range node.Content {
		d.shift(below, lines)
	}
}
