package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// witness is a test that only notes what is said of it.
type witness struct {
	testing.TB
	said []string
}

func (*witness) Helper() {}

func (w *witness) Errorf(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
}

func (w *witness) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	panic(w)
}

// compared is what Compare says in a folder of its own whose testdata has one file.
func compared(t *testing.T, anew bool, name, text string) (said string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "kept.txt"), []byte("as it was\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := *update
	*update = anew
	defer func() { *update = before }()
	w := &witness{TB: t}
	defer func() {
		if ended := recover(); ended != nil && ended != any(w) {
			panic(ended)
		}
		said = strings.Join(w.said, "\n")
	}()
	Compare(w, name, text)
	return ""
}

func TestATextIsHeldAgainstItsFile(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"the same is fine":           {"kept.txt", "as it was\n", ""},
		"another is told with both":  {"kept.txt", "as it is\n", "kept.txt differs (-want +got), go test -update writes it anew"},
		"no file is not a good file": {"none.txt", "as it is\n", "go test -update writes it"},
	} {
		t.Run(name, func(t *testing.T) {
			if said := compared(t, false, c.file, c.text); (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("it said %q, want %q", said, c.want)
			}
		})
	}
}

func TestTheFlagWritesTheFileAnew(t *testing.T) {
	for _, file := range []string{"kept.txt", "none.txt"} {
		said := compared(t, true, file, "as it is\n")
		written, err := os.ReadFile(filepath.Join("testdata", file))
		if said != "" || err != nil || string(written) != "as it is\n" {
			t.Errorf("%s: it said %q, and the file holds %q, %v", file, said, written, err)
		}
	}
}
