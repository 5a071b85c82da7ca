package timeline

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keptLines are the files of a folder, by name, as the objects of their lines.
func keptLines(t *testing.T, folder string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			var object struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct {
					HTTP []struct{ Route []struct{ Weight int } }
				}
			}
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Fatalf("%s: %v in %s", file, err, line)
			}
			text := object.Kind + " " + object.Metadata.Name
			for _, route := range object.Spec.HTTP {
				for _, destination := range route.Route {
					if destination.Weight == 42 {
						text += " with weight 42"
					}
				}
			}
			kept[filepath.Base(file)] = append(kept[filepath.Base(file)], text)
		}
	}
	return kept
}

func TestEveryVersionOfIstiosObjectsIsKeptWhereTheVariableSays(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(WrittenObjects, folder)
	s := settled(t)
	r := recording(t, s, subsetSubject())
	s.write("MODIFIED", weighted(42))
	s.write("MODIFIED", available(7))
	s.write("DELETED", destinationRuleYAML)
	r.Stop()
	if tl := r.Stop(); len(tl.Gaps) > 0 {
		t.Error(tl.Gaps)
	}
	want := map[string][]string{subsetSubject().Namespace + "-" + subsetSubject().Rollout + ".jsonl": {
		"VirtualService web", "DestinationRule web", "VirtualService web with weight 42",
	}}
	if diff := cmp.Diff(want, keptLines(t, folder)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

func TestASecondRecordingIsAppendedToTheFirst(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(WrittenObjects, folder)
	s := settled(t)
	for range 2 {
		recording(t, s, subsetSubject()).Stop()
	}
	for file, lines := range keptLines(t, folder) {
		if len(lines) != 4 {
			t.Errorf("%s has %v, want two objects of each recording", file, lines)
		}
	}
}

func TestAFolderThatIsNotThereIsAGap(t *testing.T) {
	t.Setenv(WrittenObjects, filepath.Join(t.TempDir(), "missing"))
	tl := recording(t, settled(t), subsetSubject()).Stop()
	if len(tl.Gaps) != 1 || !strings.Contains(tl.Gaps[0], WrittenObjects) {
		t.Errorf("gaps: %v", tl.Gaps)
	}
}

func TestWithoutTheVariableNothingIsKept(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	t.Setenv(WrittenObjects, "")
	if tl := recording(t, settled(t), subsetSubject()).Stop(); len(tl.Gaps) > 0 {
		t.Error(tl.Gaps)
	}
	if kept := keptLines(t, folder); len(kept) > 0 {
		t.Errorf("kept %v", kept)
	}
}
