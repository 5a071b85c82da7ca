package simulate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
)

// recorded is a play that was kept, with
//
//	simulate -f … --scenario supersede --keep
//
// and is judged and shown again: plays differ, and what is drawn of one does not.
func recorded(t *testing.T, scenario Scenario) Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "played-"+string(scenario)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var played Played
	if err := json.Unmarshal(text, &played); err != nil {
		t.Fatal(err)
	}
	if played.Scenario != scenario || len(played.Native.Entries) == 0 || len(played.Plugin.Entries) == 0 {
		t.Fatalf("%s is recorded as %q, with %d and %d entries", scenario, played.Scenario, len(played.Native.Entries), len(played.Plugin.Entries))
	}
	return Judge(Plan{}, played)
}

func TestWhatIsShownOfARecordedPlay(t *testing.T) {
	for _, scenario := range []Scenario{Supersede, Abort, Scale} {
		t.Run(string(scenario), func(t *testing.T) {
			result := recorded(t, scenario)
			var table, picture, again bytes.Buffer
			if err := WriteResult(&table, result); err != nil {
				t.Fatal(err)
			}
			fitsAScreen(t, table.String())
			golden.Compare(t, string(scenario)+".txt", table.String())
			for _, out := range []*bytes.Buffer{&picture, &again} {
				if err := WriteSVG(out, result); err != nil {
					t.Fatal(err)
				}
			}
			golden.Compare(t, string(scenario)+".svg", picture.String())
			if picture.String() != again.String() {
				t.Error("drawn twice the picture differs")
			}
		})
	}
}
