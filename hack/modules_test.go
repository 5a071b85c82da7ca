package hack

import (
	"bytes"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The workflows install the Go of the plugin's go.mod, and no other is fetched there: it
// has to do for the lab's modules, too.
func TestTheGoOfTheWorkflowsBuildsEveryModule(t *testing.T) {
	listed, err := exec.Command("git", "-C", "..", "ls-files", "go.mod", "*/go.mod").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(listed))
	if len(modules) < 5 {
		t.Fatalf("only %q", modules)
	}
	installed := line(t, "go.mod", "toolchain")
	for _, module := range modules {
		if needs := "go" + line(t, module, "go"); !version.IsValid(needs) || version.Compare(needs, installed) > 0 {
			t.Errorf("%s needs %s, the workflows install %s", module, needs, installed)
		}
	}
}

// line is what stands in a go.mod behind a word at the beginning of a line.
func line(t *testing.T, module, word string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", module))
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(content) {
		if fields := strings.Fields(string(text)); len(fields) == 2 && fields[0] == word {
			return fields[1]
		}
	}
	t.Fatalf("%s has no line %s", module, word)
	return ""
}
