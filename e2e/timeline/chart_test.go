package timeline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
	"pgregory.net/rapid"
)

func drawn(t *testing.T, native, plugin Timeline) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteSVG(&b, native, plugin); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// texts are the words of a picture; reading them also shows that it is XML.
func texts(t *testing.T, svg string) []string {
	t.Helper()
	var out []string
	d := xml.NewDecoder(strings.NewReader(svg))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				out = append(out, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func TestThePictureSaysWhatItShows(t *testing.T) {
	svg := drawn(t, nativeIncident(), guardedIncident())
	words := strings.Join(texts(t, svg), "\n")
	for _, want := range []string{
		"Native Istio router", "up to 100 points more than the pods can take, for 13.9 s; 2.7 s to no pod at all", "finished after 44.1 s",
		"This plugin", "up to 5 points more than the pods can take, for 20 ms; 10 ms to no pod at all", "finished after 24.1 s",
		"traffic sent to the canary", "what its available pods can take", "traffic beyond that: overload",
		"percent of all traffic", "time in seconds", "100", "45",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in the picture:\n%s", want, words)
		}
	}
	for what, want := range map[string]string{
		"900 pixels wide":             `<svg width="675pt" height="450pt"`,
		"white all over":              `<path d="M0,0L675,0L675,450L0,450Z" style="fill:#FFFFFF" />`,
		"other fonts for want of one": "font-family:Liberation Sans,Arial,Helvetica,sans-serif;",
		"the overload, shaded":        "fill:#DF4E38",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture is not %s: no %s", what, want)
		}
	}
}

func TestTheSameTimelinesGiveTheSameBytes(t *testing.T) {
	first := drawn(t, nativeIncident(), guardedIncident())
	for range 3 {
		if again := drawn(t, nativeIncident(), guardedIncident()); again != first {
			t.Fatalf("the pictures differ:\n%s", cmp.Diff(first, again))
		}
	}
}

func TestARunWithoutOverloadHasNoShading(t *testing.T) {
	calm := healthy().hashes(oldHash, newHash).status(func(r *Rollout) { r.PodHash = oldHash }).at(1000).weight(10).timeline(5000)
	svg := drawn(t, calm, calm)
	words := strings.Join(texts(t, svg), "\n")
	if n := strings.Count(words, "never more than the pods can take"); n != 2 {
		t.Errorf("%d of 2 panels say that all is well:\n%s", n, words)
	}
	if strings.Contains(words, "finished") {
		t.Error("a run that did not finish says it did")
	}
	// One patch of the colour is the legend's.
	if n := strings.Count(svg, "fill:#DF4E38"); n != 1 {
		t.Errorf("%d shaded areas, want only the legend's", n)
	}
}

func TestOverloadBecomesWholeAreas(t *testing.T) {
	curve := []step{{0, 0, 10}, {1, 100, 10}, {3, 100, 0}, {5, 100, 100}, {6, 100, 50}, {7, 40, 50}, {8, 60, 50}, {9, 60, 50}}
	want := [][]step{
		{{1, 100, 10}, {3, 100, 0}, {5, 100, 0}},
		{{6, 100, 50}, {7, 100, 50}},
		{{8, 60, 50}, {9, 60, 50}},
	}
	if diff := cmp.Diff(want, beyondParts(curve), cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheCurveIsLevelBetweenChanges(t *testing.T) {
	got := stairs([]step{{0, 0, 10}, {1, 100, 10}, {3, 100, 20}}, trafficOf)
	var xy [][2]float64
	for _, p := range got {
		xy = append(xy, [2]float64{p.X, p.Y})
	}
	if diff := cmp.Diff([][2]float64{{0, 0}, {1, 0}, {1, 100}, {3, 100}, {3, 100}}, xy); diff != "" {
		t.Error(diff)
	}
}

func TestTheCurveEndsWithThePicture(t *testing.T) {
	tl := healthy().hashes(oldHash, newHash).status(func(r *Rollout) { r.PodHash = oldHash }).
		at(1000).weight(50).weight(10).at(3000).weight(200).at(9000).weight(0).timeline(10000)
	want := []step{{0, 0, 10}, {1, 10, 10}, {3, 100, 10}, {5, 100, 10}}
	if diff := cmp.Diff(want, curveOf(tl, 5*time.Second), cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTicksAreRoundNumbers(t *testing.T) {
	for end, want := range map[time.Duration]float64{
		time.Second: 0.1, 12 * time.Second: 1, 47 * time.Second: 5, 2 * time.Minute: 10, 20 * time.Minute: 120, time.Hour: 300,
	} {
		if got := tickStep(end); got != want {
			t.Errorf("%s: a tick each %v s, want %v", end, got, want)
		}
	}
	want := []plot.Tick{{Value: 0, Label: "0"}, {Value: 25, Label: "25"}, {Value: 50, Label: "50"}}
	if diff := cmp.Diff(want, every(25).Ticks(0, 60)); diff != "" {
		t.Error(diff)
	}
}

func TestAnythingCanBeDrawn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tl := New(subsetSubject(), time.Time{}, 0, drawnEntries(rt))
		if err := WriteSVG(io.Discard, tl, tl); err != nil {
			rt.Fatal(err)
		}
	})
}
