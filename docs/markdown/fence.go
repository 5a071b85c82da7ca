package markdown

import (
	"fmt"
	"regexp"
	"strings"
)

// Kind is what a marker asks for.
type Kind string

// The kinds of markers, see the package's documentation.
const (
	None     Kind = ""
	Runnable Kind = "runnable"
	Fragment Kind = "fragment"
)

// Marker is what stands above a fence.
type Marker struct {
	Kind Kind
	// File and Path are those of "runnable in FILE at PATH", and empty for whole
	// objects. Instead says that nothing of the file's own is left at Path.
	File, Path string
	Instead    bool
	// Why is the reason of a fragment.
	Why string
}

// Fence is a fenced block.
type Fence struct {
	// At is page:line of the line that opens it, for messages.
	At string
	// Language is the word behind the backticks, such as "yaml".
	Language string
	// Body is the text without the indentation that the fence has.
	Body string
	Marker
}

var (
	comment  = regexp.MustCompile(`^<!--\s*(.*?)\s*-->$`)
	embedded = regexp.MustCompile(`^runnable in (\S+) (at|instead of) (\S+)$`)
)

// Fences are the page's fenced blocks. The error names a marker that says nothing
// this package knows; comments that begin with another word are no markers.
func (p Page) Fences() ([]Fence, error) {
	var found []Fence
	for i := 0; i < len(p.lines); i++ {
		if !p.lines[i].code {
			continue
		}
		open := p.lines[i].text
		indent := len(open) - len(strings.TrimLeft(open, " "))
		mark := opens(open)
		f := Fence{At: p.at(i), Language: strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(open), mark))}
		var err error
		if f.Marker, err = p.markerAbove(i); err != nil {
			return nil, fmt.Errorf("%s: %w", f.At, err)
		}
		var body strings.Builder
		for i++; i < len(p.lines) && !closes(p.lines[i].text, mark); i++ {
			text := p.lines[i].text
			body.WriteString(text[min(indent, len(text)-len(strings.TrimLeft(text, " "))):] + "\n")
		}
		f.Body = body.String()
		found = append(found, f)
	}
	return found, nil
}

func closes(text, mark string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), mark) && strings.Trim(strings.TrimSpace(text), mark[:1]) == ""
}

// markerAbove looks through the comments directly above a line.
func (p Page) markerAbove(i int) (Marker, error) {
	for i--; i >= 0 && !p.lines[i].code; i-- {
		text := strings.TrimSpace(p.lines[i].text)
		if text == "" {
			continue
		}
		found := comment.FindStringSubmatch(text)
		if found == nil {
			break
		}
		if m, err := parseMarker(found[1]); m.Kind != None || err != nil {
			return m, err
		}
	}
	return Marker{}, nil
}

func parseMarker(text string) (Marker, error) {
	word, _, _ := strings.Cut(text, " ")
	switch word = strings.TrimSuffix(word, ":"); {
	case text == string(Runnable):
		return Marker{Kind: Runnable}, nil
	case word == string(Runnable):
		if found := embedded.FindStringSubmatch(text); found != nil {
			return Marker{Kind: Runnable, File: found[1], Path: found[3], Instead: found[2] != "at"}, nil
		}
	case word == string(Fragment):
		if why, ok := strings.CutPrefix(text, "fragment: "); ok && strings.TrimSpace(why) != "" {
			return Marker{Kind: Fragment, Why: strings.TrimSpace(why)}, nil
		}
	default:
		return Marker{}, nil
	}
	return Marker{}, fmt.Errorf("marker %q: write <!-- runnable -->, <!-- runnable in FILE at PATH --> or <!-- fragment: why -->", text)
}
