package timeline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WrittenObjects is the environment variable that names a folder. When it is
// set, [Recorder.Stop] appends every version of a VirtualService or
// DestinationRule that was seen to a file of that folder, one JSON object a
// line, for Istio's own validation to be run over them later. The folder has
// to exist.
const WrittenObjects = "WRITTEN_OBJECTS"

// keepWritten does what WrittenObjects says. Several recorders, also of several
// processes, may share the folder: each namespace has a file of its own, and
// what one recorder has to say is appended in one write.
func keepWritten(t Timeline) (err error) {
	folder := os.Getenv(WrittenObjects)
	if folder == "" {
		return nil
	}
	lines, err := istioObjects(t)
	if err != nil || len(lines) == 0 {
		return err
	}
	path := filepath.Join(folder, t.Subject.Namespace+"-"+t.Subject.Rollout+".jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("%s: %w", WrittenObjects, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(lines)
	return err
}

// istioObjects are the versions in the order in which they were written. A
// deletion is no version: it shows the last one again.
func istioObjects(t Timeline) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // ends each object with a line break
	for _, e := range t.Entries {
		if e.Object == nil || e.Deleted {
			continue
		}
		switch e.Fact.Kind() {
		case KindVirtualService, KindDestinationRule:
			if err := encoder.Encode(e.Object.Object); err != nil {
				return nil, fmt.Errorf("%s %s/%s: %w", e.Fact.Kind(), t.Subject.Namespace, e.Name, err)
			}
		}
	}
	return out.Bytes(), nil
}
