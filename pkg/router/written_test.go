package router

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// written keeps what tests write for Istio's validation to look at: with
// WRITTEN_OBJECTS set, each write becomes one line of a file of this process in
// that folder (see e2e/istio and hack/test.sh).
var written struct {
	sync.Mutex
	file *os.File
	seen map[string]bool // specs that were noted already: the model writes few kinds of them
}

// keepWritten notes that a write made after of before, both the object as JSON; before
// is nil for an object that was not there. after has to be acceptable to Istio
// only if before was.
func keepWritten(before, after []byte) error {
	folder := os.Getenv("WRITTEN_OBJECTS")
	if folder == "" {
		return nil
	}
	if again, err := notedBefore(before, after); again || err != nil {
		return err
	}
	line := map[string]json.RawMessage{"after": after}
	if before != nil {
		line["before"] = before
	}
	text, err := json.Marshal(line) // on one line, whatever the objects look like
	if err != nil {
		return err
	}
	written.Lock()
	defer written.Unlock()
	if written.file == nil {
		name := fmt.Sprintf("%s-%d.jsonl", filepath.Base(os.Args[0]), os.Getpid())
		if written.file, err = os.Create(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	_, err = written.file.Write(append(text, '\n'))
	return err
}

// notedBefore tells whether the same change of the spec was noted already.
func notedBefore(before, after []byte) (bool, error) {
	var specs [2]struct {
		Spec json.RawMessage `json:"spec"`
	}
	for i, text := range [][]byte{before, after} {
		if text == nil {
			continue
		}
		if err := json.Unmarshal(text, &specs[i]); err != nil {
			return false, err
		}
	}
	key := string(specs[0].Spec) + string(specs[1].Spec)
	written.Lock()
	defer written.Unlock()
	if written.seen == nil {
		written.seen = map[string]bool{}
	}
	seen := written.seen[key]
	written.seen[key] = true
	return seen, nil
}
