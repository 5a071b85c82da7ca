package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxBytes bounds a block. A list of a thousand routes is a tenth of it; etcd
	// refuses objects six times as large.
	maxBytes = 256 << 10
	// maxDepth bounds nesting. The deepest field of the vocabulary lies at 6.
	maxDepth = 16
)

// kind is what a JSON value is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject
)

// String names the kind the way a report does.
func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}[k]
}

// node is a JSON value that keeps what encoding/json forgets: fields given twice,
// and the spelling of their names. Decoding into structs would also stop at the
// first wrong type, and take "Name" for "name".
type node struct {
	kind kind
	// text is the string, the number as written, or "true" or "false".
	text   string
	items  []node
	fields []member
}

// member is one field of an object, in the order given.
type member struct {
	name  string
	value node
}

// parse turns the block into a tree. Its errors say what to do and need only the
// path in front.
func parse(raw []byte) (node, error) {
	if len(raw) > maxBytes {
		return node{}, fmt.Errorf("%d bytes are too many: a configuration has at most %d", len(raw), maxBytes)
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return node{}, errors.New("is empty: give virtualService or virtualServices")
	}
	if !json.Valid(raw) {
		return node{}, syntaxError(raw)
	}
	r := reader{raw: raw}
	return r.value(0)
}

// syntaxError says where the text stops being JSON.
func syntaxError(raw []byte) error {
	err := json.Unmarshal(raw, new(json.RawMessage))
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("not valid JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// reader builds the tree from text that is known to be valid JSON, so it need not
// look for faults again. The token reader of encoding/json takes five times as
// long, and this runs at each RPC.
type reader struct {
	raw []byte
	at  int
}

func (r *reader) value(depth int) (node, error) {
	if depth > maxDepth {
		return node{}, fmt.Errorf("nested deeper than %d levels: check the indentation", maxDepth)
	}
	switch r.next() {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		return node{kind: kindString, text: r.text()}, nil
	case 't', 'f':
		return node{kind: kindBool, text: r.word()}, nil
	case 'n':
		return node{kind: kindNull, text: r.word()}, nil
	default:
		return node{kind: kindNumber, text: r.word()}, nil
	}
}

func (r *reader) list(depth int) (node, error) {
	n := node{kind: kindList}
	for r.at++; r.next() != ']'; {
		item, err := r.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
		r.skip(',')
	}
	r.at++
	return n, nil
}

func (r *reader) object(depth int) (node, error) {
	n := node{kind: kindObject}
	for r.at++; r.next() != '}'; {
		name := r.text()
		r.skip(':')
		value, err := r.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.fields = append(n.fields, member{name: name, value: value})
		r.skip(',')
	}
	r.at++
	return n, nil
}

// next passes over blanks and returns the byte that follows, without taking it.
func (r *reader) next() byte {
	for r.raw[r.at] == ' ' || r.raw[r.at] == '\t' || r.raw[r.at] == '\n' || r.raw[r.at] == '\r' {
		r.at++
	}
	return r.raw[r.at]
}

// skip passes over the separator where there is one; after the last item there is
// none.
func (r *reader) skip(separator byte) {
	if r.next() == separator {
		r.at++
	}
}

// word takes a number, true, false or null.
func (r *reader) word() string {
	start := r.at
	for r.at < len(r.raw) && strings.IndexByte(" \t\r\n,]}", r.raw[r.at]) < 0 {
		r.at++
	}
	return string(r.raw[start:r.at])
}

// text takes a string. The ordinary one is copied as it is; escapes and faulty
// UTF-8 are left to encoding/json.
func (r *reader) text() string {
	start := r.at
	for r.at++; r.raw[r.at] != '"'; r.at++ {
		if r.raw[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	quoted := r.raw[start:r.at]
	if bytes.IndexByte(quoted, '\\') < 0 && utf8.Valid(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		// It was valid a moment ago; should that ever be wrong, the raw text is
		// still a fair answer.
		return string(quoted)
	}
	return text
}
