package virtualservice

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// writer reads and writes parts of a route's JSON and keeps the first error, after
// which it does nothing.
type writer struct {
	err error
}

// read decodes a field; one that is not there or null leaves into as it is.
func (w *writer) read(in block, name string, into any) {
	if w.err != nil || !given(in[name]) {
		return
	}
	if err := json.Unmarshal(in[name], into); err != nil {
		w.err = fmt.Errorf("%s: %w", name, err)
	}
}

// put sets a field.
func (w *writer) put(in block, name string, value any) {
	if raw := w.raw(value); w.err == nil {
		in[name] = raw
	}
}

// raw is the value as JSON with sorted keys.
func (w *writer) raw(value any) json.RawMessage {
	if w.err != nil {
		return nil
	}
	raw, err := json.Marshal(value)
	w.err = cmp.Or(w.err, err)
	return raw
}

// given tells whether a field is there and not null.
func given(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null"
}
