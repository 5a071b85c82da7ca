// Package golden holds what a program writes against files that were read and found
// right: those in the folder testdata of the package under test. With the flag -update
// of go test they are written anew, for the difference to be read before it is kept.
//
// Only tests import it: a program would get the flag, too.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Compare fails the test where text is not what the file of that name in testdata holds.
// A file that is not there fails it as well.
func Compare(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s differs (-want +got), go test -update writes it anew:\n%s", path, diff)
	}
}
