package jsonpatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// resourceVersionPath is where every Kubernetes object keeps its version.
const resourceVersionPath = "/metadata/resourceVersion"

// The operations of RFC 6902 that the plugin uses.
const (
	opAdd    = "add"
	opRemove = "remove"
	opTest   = "test"
)

// Op is one operation of a patch. Path is a JSON pointer (RFC 6901), as Pointer
// writes it. Value is anything that encoding/json can write; "remove" has none.
type Op struct {
	Op    string
	Path  string
	Value any
}

// Patch is a list of operations, applied in order and as a whole: if one of them
// fails, none has an effect. The zero value changes nothing.
type Patch []Op

// Add sets the field at path. In an object it also replaces a value that is there
// already, so callers need not know whether the field exists; its parent must.
func Add(path string, value any) Op {
	return Op{Op: opAdd, Path: path, Value: value}
}

// Remove deletes the field at path. The patch fails if there is no such field.
func Remove(path string) Op {
	return Op{Op: opRemove, Path: path}
}

// Test makes the patch fail unless the field at path has exactly this value.
func Test(path string, value any) Op {
	return Op{Op: opTest, Path: path, Value: value}
}

// pointerEscapes holds the two characters that mean something in a pointer. The
// order matters to RFC 6901 only when reading; a single pass writes both safely.
var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer joins the names of fields, and the decimal indices of list entries, to a
// JSON pointer. "/" and "~" inside a name are escaped, so that a label or
// annotation key can be passed as it is. No parts mean the whole document.
func Pointer(parts ...string) string {
	size := len(parts)
	for _, part := range parts {
		size += len(part)
	}
	var pointer strings.Builder
	pointer.Grow(size)
	for _, part := range parts {
		pointer.WriteByte('/')
		pointer.WriteString(pointerEscapes.Replace(part))
	}
	return pointer.String()
}

// wire is an operation as RFC 6902 has it. The pointer parts "no value", for remove,
// from "the value null", which omitempty alone would drop and so make an invalid
// operation of it.
type wire struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *any   `json:"value,omitempty"`
}

func (o *Op) wire() wire {
	if o.Op == opRemove {
		return wire{Op: o.Op, Path: o.Path}
	}
	return wire{Op: o.Op, Path: o.Path, Value: &o.Value}
}

// MarshalJSON writes the operation as RFC 6902 has it.
func (o Op) MarshalJSON() ([]byte, error) {
	return json.Marshal(o.wire())
}

// Marshal writes the patch as the body of a request of type
// application/json-patch+json; an empty patch is "[]". It fails only if a value
// cannot be written as JSON, which is an error in the program.
func (p Patch) Marshal() ([]byte, error) {
	// In one go: a MarshalJSON for each of 1000 operations takes several times as long.
	ops := make([]wire, len(p))
	for i := range p {
		ops[i] = p[i].wire()
	}
	body, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("write JSON patch: %w", err)
	}
	return body, nil
}

// Guarded returns the patch with a test of metadata.resourceVersion in front: the
// API server then refuses it if anybody has written the object since. A guard that
// is there already is replaced, so that a retry may simply guard again; p itself
// never changes.
//
// A patch that changes nothing stays empty, because sending a lone guard would be
// a request without a purpose. An empty resourceVersion is written all the same:
// no object has one, so a patch computed from nowhere is refused, not applied.
func (p Patch) Guarded(resourceVersion string) Patch {
	changes := p
	if len(p) > 0 && p[0].Op == opTest && p[0].Path == resourceVersionPath {
		changes = p[1:]
	}
	if len(changes) == 0 {
		return nil
	}
	return slices.Concat(Patch{Test(resourceVersionPath, resourceVersion)}, changes)
}
