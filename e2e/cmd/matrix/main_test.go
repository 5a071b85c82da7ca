package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWrongCommandLineIsAnErrorThatSaysWhatThereIs(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"no such release":           {"--controller=v1.0.0", "v1.8.5"},
		"no such version of Istio":  {"--istio=v2", "v1beta1"},
		"no such story":             {"--story=canary,fable", "incident"},
		"an argument":               {"all", "there are only flags"},
		"no such flag":              {"--fast", "see --help"},
		"a page that is not there":  {"--file=nowhere.md", "nowhere.md"},
		"a page without the places": {"--file=doc.go", "begin matrix"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), &out, []string{tc.args})
		if err == nil || !strings.Contains(err.Error(), tc.want) || out.Len() > 0 {
			t.Errorf("%s: error %v, want one with %q; printed %q", name, err, tc.want, &out)
		}
	}
}

func TestFillPutsTheTableBetweenItsMarkersAndNowhereElse(t *testing.T) {
	got, err := fill([]byte("before\n"+begin+"old\n"+end+"\nafter\n"), "| new |\n")
	if want := "before\n" + begin + "| new |\n" + end + "\nafter\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := fill([]byte(end+"\n"+begin), "| new |\n"); err == nil {
		t.Error("markers in the wrong order are no error")
	}
}

func TestThePageHasThePlaceForTheTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fill(page, ""); err != nil {
		t.Error(err)
	}
}
