package matrix

import (
	"bytes"
	"slices"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// The oldest and the newest of both, crossed. With all versions of Istio's kinds
// served the newest has its own tests in package scenarios.
func TestASampleOfTheMatrixHolds(t *testing.T) {
	plugin, err := lab.BuildPlugin(t.Context(), lab.PluginOptions{Race: true})
	if err != nil {
		t.Fatal(err)
	}
	oldest := lab.TestedReleases()[0]
	for _, sample := range []struct {
		ground Ground
		cells  []Cell
	}{
		{Ground{oldest, "v1alpha3"}, Cells(canary(), incident(), parts())},
		{Ground{lab.DefaultVersion, "v1beta1"}, Cells(canary(), aborted())},
	} {
		t.Run(sample.ground.String(), func(t *testing.T) {
			outcomes, err := Play(t.Context(), sample.ground, plugin, t.Output(), sample.cells...)
			if err != nil {
				t.Error(err)
			}
			for _, o := range outcomes {
				var why bytes.Buffer
				if err := o.Explain(&why); err != nil || why.Len() > 0 {
					t.Error(why.String(), err)
				}
			}
			t.Logf("\n%s", Table(outcomes))
		})
	}
}

func TestTheMatrixHasEveryReleaseWithEveryVersionOfIstio(t *testing.T) {
	grounds, err := Grounds()
	if err != nil {
		t.Fatal(err)
	}
	releases, err := lab.Releases()
	if err != nil {
		t.Fatal(err)
	}
	if want := len(releases) * 3; len(grounds) != want {
		t.Errorf("%d grounds, want %d", len(grounds), want)
	}
	for _, story := range Stories() {
		for release := range story.lacks {
			if !slices.Contains(releases, release) {
				t.Errorf("story %s knows of %s, which is not played", story.Name, release)
			}
		}
	}
}
