package timeline

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
)

// compare holds a text against a file and against what a terminal can show.
func compare(t *testing.T, name, got string) {
	t.Helper()
	golden.Compare(t, name, got)
	expectPlain(t, got)
}

// expectPlain wants lines of at most 140 columns without colours or trailing
// spaces.
func expectPlain(t interface{ Errorf(string, ...any) }, text string) {
	for n, l := range strings.Split(text, "\n") {
		if c := utf8.RuneCountInString(l); c > width {
			t.Errorf("line %d has %d columns: %s", n+1, c, l)
		}
		if strings.ContainsAny(l, "\x1b\t\r") || strings.TrimRight(l, " ") != l {
			t.Errorf("line %d is not plain: %q", n+1, l)
		}
	}
}

func printed(t *testing.T, tl Timeline) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, tl); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePrintedTimeline(t *testing.T) {
	compare(t, "native.txt", printed(t, nativeIncident()))
	compare(t, "guarded.txt", printed(t, guardedIncident()))
}

// oddStory has what the incident has not: minReadySeconds, missing hashes, an
// abort, deletions, strange weights, a gap.
func oddStory() Timeline {
	s := newScript()
	s.subject.MaxWeight = 1000
	s.status(func(r *Rollout) { *r = Rollout{StepIndex: -1, Replicas: 3, Current: true} }).weights(0, 900)
	s.at(500).hashes(oldHash, "").at(800).add("web-"+oldHash, ReplicaSet{Hash: oldHash, Pods: Pods{Size: 3, Ready: 3, Available: 1}})
	s.at(900).weights(333, 667).at(950).weights(333, 667).at(1000).hashes(oldHash, "").
		at(1100).status(func(r *Rollout) {
		r.Abort, r.Phase, r.Message = true, "Degraded", "RolloutAborted: metric \"errors\"\nassessed Failed due to failed (3) > failureLimit (2) and "+strings.Repeat("so on ", 40)
	}).at(1200).add("web-"+oldHash, ReplicaSet{Hash: oldHash, Pods: Pods{Size: 3, Ready: 3, Available: 1}}).
		at(1300).pods(oldHash, 0, 0).deleted().at(1350).pods(oldHash, 3, 0).at(1400).weights(-5, 1005).at(1500).event("Long", strings.Repeat("x", 300))
	tl := s.timeline(2000)
	tl.Gaps = []string{"virtualservices.networking.istio.io: the server had dropped the history"}
	return tl
}

func TestThePrintedTimelineOfAnOddStory(t *testing.T) {
	compare(t, "odd.txt", printed(t, oddStory()))
}

func beside(t *testing.T, left, right Timeline) string {
	t.Helper()
	var b bytes.Buffer
	if err := SideBySide(&b, left, right, [2]string{"native Istio router, controller v1.10.1", "this plugin"}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTwoTimelinesSideBySide(t *testing.T) {
	compare(t, "sidebyside.txt", beside(t, nativeIncident(), guardedIncident()))
	compare(t, "sidebyside-odd.txt", beside(t, oddStory(), New(subsetSubject(), time.Time{}, 0, nil)))
}

func TestAnythingPrintsWithinTheWidth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tl := New(subsetSubject(), time.Time{}, ms(6000), drawnEntries(rt))
		var b bytes.Buffer
		if err := errors.Join(Print(&b, tl), SideBySide(&b, tl, guardedIncident(), [2]string{"left", "right"})); err != nil {
			rt.Fatal(err)
		}
		expectPlain(rt, b.String())
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestAWriterThatFailsIsReported(t *testing.T) {
	tl := guardedIncident()
	for name, err := range map[string]error{
		"Print":      Print(brokenPipe{}, tl),
		"SideBySide": SideBySide(brokenPipe{}, tl, tl, [2]string{}),
		"WriteSVG":   WriteSVG(brokenPipe{}, tl, tl),
	} {
		if err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestBarsShowTrafficAgainstShare(t *testing.T) {
	for sentence, c := range map[string]struct {
		traffic, share float64
		want           string
	}{
		"nothing and nobody":                    {0, 0, "                    "},
		"pods without traffic are room":         {0, 10, "..                  "},
		"traffic that the pods can take":        {10, 10, "##                  "},
		"half of it used":                       {50, 100, "##########.........."},
		"everything to two of twenty pods":      {100, 10, "##!!!!!!!!!!!!!!!!!!"},
		"everything to nobody":                  {100, 0, "!!!!!!!!!!!!!!!!!!!!"},
		"the least excess shows":                {34, 33.4, "#######!            "},
		"a difference of rounding is no excess": {100.0 / 3, 100.0/3 - 1e-12, "#######             "},
		"a negative weight is none":             {-140, 10, "..                  "},
		"more than all is all":                  {250, 100, "####################"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := bar(c.traffic, c.share); got != c.want {
				t.Errorf("bar(%v, %v) = [%s], want [%s]", c.traffic, c.share, got, c.want)
			}
		})
	}
}

func TestABarIsAlwaysAsWideAndTrue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		traffic, share := rapid.Float64Range(-50, 250).Draw(rt, "traffic"), rapid.Float64Range(0, 100).Draw(rt, "share")
		got := bar(traffic, share)
		if len(got) != barWidth {
			rt.Fatalf("[%s] is %d wide", got, len(got))
		}
		if beyond := min(traffic, 100) > share+rounding; beyond != strings.Contains(got, "!") {
			rt.Fatalf("bar(%v, %v) = [%s]", traffic, share, got)
		}
	})
}

func TestSpansAreRoundAndFew(t *testing.T) {
	for end, want := range map[time.Duration]time.Duration{
		0: ms(100), 3 * time.Second: ms(100), 5 * time.Second: ms(200), 10 * time.Second: ms(500), 20 * time.Second: time.Second,
		47 * time.Second: 2 * time.Second, 2 * time.Minute: 5 * time.Second, 5 * time.Minute: 10 * time.Second, time.Hour: 200 * time.Second,
	} {
		if got := spanFor(end); got != want {
			t.Errorf("%s: spans of %s, want %s", end, got, want)
		}
	}
}

func TestLinesStandBesideEachOtherWhenTheyAreNearInTime(t *testing.T) {
	l := []cell{{ms(100), "a"}, {ms(900), "b"}, {ms(3000), "c"}}
	r := []cell{{ms(200), "A"}, {ms(2000), "B"}}
	want := [][2]string{{"a", "A"}, {"b", ""}, {"", "B"}, {"c", ""}}
	if diff := cmp.Diff(want, align(l, r, time.Second)); diff != "" {
		t.Error(diff)
	}
}

func TestWordsAreWrapped(t *testing.T) {
	for sentence, c := range map[string]struct {
		text string
		want []string
	}{
		"a short text stays":                      {"one two", []string{"one two"}},
		"a text breaks between words":             {"one two three four", []string{"one two", "three four"}},
		"a word that just fits stays in its line": {"one two th four", []string{"one two th", "four"}},
		"the last line is cut":                    {"one two three four five sixes seven", []string{"one two", "three four", "five si..."}},
		"a word too long is cut":                  {"abcdefghijklmnop", []string{"abcdefg..."}},
		"runes are counted, not bytes":            {"ééééé ééééé éé", []string{"ééééé", "ééééé éé"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(c.want, wrap(c.text, 10, 3)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShortTimesAreNotNone(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ms", ms(20): "20 ms", ms(999): "999 ms", ms(1500): "1.5 s", ms(44100): "44.1 s"} {
		if got := brief(d); got != want {
			t.Errorf("brief(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestOverloadIsNeverJoinedAway(t *testing.T) {
	s := healthy().hashes(oldHash, newHash).status(func(r *Rollout) { r.PodHash = oldHash }).weight(10)
	// Once the weight follows the pods, once the pods come back by themselves.
	tl := s.at(1000).pods(oldHash, 20, 1).at(1010).weight(5).at(1020).pods(oldHash, 20, 2).at(1030).weight(10).
		at(8000).pods(oldHash, 20, 1).at(8010).pods(oldHash, 20, 2).timeline(60000)
	var overloads int
	for _, c := range column(tl, spanFor(tl.End)) {
		overloads += strings.Count(c.text, "!")
	}
	if overloads != 2 {
		t.Errorf("%d marks of overload, want 2:\n%s", overloads, beside(t, tl, tl))
	}
}

func TestALineThatIsRepeatedIsToldOnce(t *testing.T) {
	s := healthy().hashes(oldHash, newHash).at(1000)
	for range 5 {
		s.event("TrafficRoutingError", "not yet").at(int(s.now/time.Millisecond) + 20)
	}
	tl := s.event("Other", "").event("TrafficRoutingError", "not yet").at(3000).weight(5).event("TrafficRoutingError", "not yet").timeline(9000)
	var told []string
	for _, m := range moments(tl, tl.Revision(), spanFor(tl.End)) {
		told = append(told, m.why)
	}
	// Once, again after something else, and again beside another weight.
	want := []string{"start", "TrafficRoutingError", "Other", "TrafficRoutingError", "TrafficRoutingError"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
