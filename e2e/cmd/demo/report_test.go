package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/fleet"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline/tape"
)

// screen is how wide the report may be.
const screen = 140

// compare holds a text against a file, and against what a screen can show.
func compare(t *testing.T, name, got string) {
	t.Helper()
	golden.Compare(t, name, got)
	for n, line := range strings.Split(got, "\n") {
		if columns := utf8.RuneCountInString(line); columns > screen || strings.TrimRight(line, " \t") != line {
			t.Errorf("line %d has %d columns, or spaces at its end: %q", n+1, columns, line)
		}
	}
}

func defaults(t *testing.T) options {
	t.Helper()
	o, _, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheReportOfTheRequests(t *testing.T) {
	native := mesh.Row{Sent: 1615, Lost: 152, Worst: fleet.Second{Sent: 96, Lost: 73}}
	compare(t, "requests.txt", requestsIntro(defaults(t))+requestsVerdict(native, mesh.Row{Sent: 1019}))
}

func TestTheReportOfTheRollback(t *testing.T) {
	var out bytes.Buffer
	out.WriteString(incidentIntro(defaults(t)))
	if err := writeIncident(&out, pair{nativeStory(), pluginStory(20)}); err != nil {
		t.Fatal(err)
	}
	compare(t, "incident.txt", out.String())
}

func TestTheReportOfTheCanary(t *testing.T) {
	o := defaults(t)
	compare(t, "canary.txt", canaryIntro(o)+canaryVerdict(pair{nativeStory(), pluginStory(10)}.measure()))
}

func TestTheReportOfTheFlappingPod(t *testing.T) {
	o := defaults(t)
	compare(t, "flapping.txt", flappingIntro(o)+flappingVerdict(pair{nativeFlaps(), pluginFlaps()}.measure()))
}

func TestWritesAreCountedInWords(t *testing.T) {
	one := tape.New("cart").At(1).Weight(10).Timeline(2).Measure()
	if got := writes(one); got != "1 write of the VirtualService" {
		t.Errorf("one write is told as %q", got)
	}
	if got := writes(tape.New("cart").Timeline(2).Measure()); got != "0 writes of the VirtualService" {
		t.Errorf("no write is told as %q", got)
	}
}

func TestTheIntroductionSaysAtWhichLevelTheTrafficIsSplit(t *testing.T) {
	o := defaults(t)
	for level, want := range map[scenarios.Level]string{
		scenarios.Host: "split between two Services,", scenarios.Subset: "split between two subsets of one Service,",
	} {
		o.level = level
		if text := incidentIntro(o); !strings.Contains(text, want) {
			t.Errorf("%s: %q is not in\n%s", level, want, text)
		}
	}
}

func TestTheVerdictSaysWhatWasMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		native, plugin timeline.Timeline
		want, without  []string
	}{
		"a plugin that is faster is said to be": {nativeStory(), pluginStory(20),
			[]string{"finished after 30 s", "finished after 20 s", "that cost no time: it finished 10 s earlier"}, nil},
		"a plugin that is slower is said to be": {nativeStory(), pluginStory(33.5),
			[]string{"that cost time: it finished 3.5 s later"}, []string{"cost no time"}},
		"a difference within the noise is none": {nativeStory(), pluginStory(30.3),
			[]string{"it finished at the same time"}, []string{"earlier", "later"}},
		"no praise for a plugin that overloads its pods as well": {nativeStory(), nativeStory(),
			[]string{"up to 100 points more"}, []string{"follow the pods", "never more"}},
		"a story without an end has no time": {endless(), pluginStory(20),
			[]string{"finished never", "finished after 20 s"}, []string{"earlier", "later"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := incidentVerdict(pair{c.native, c.plugin}.measure())
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			for _, without := range c.without {
				if strings.Contains(text, without) {
					t.Errorf("%q is in\n%s", without, text)
				}
			}
		})
	}
}

func TestACanaryThatNeverEndsIsNotComparedInTime(t *testing.T) {
	text := canaryVerdict(pair{endless(), pluginStory(10)}.measure())
	if !strings.Contains(text, "native router finished never, this plugin after 10 s.") || strings.Contains(text, "times") {
		t.Error(text)
	}
}

func TestShortTimesAreNotNone(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 20 * time.Millisecond: "20 ms", time.Second: "1 s", 7340 * time.Millisecond: "7.3 s", time.Minute: "60 s",
	} {
		if got := inSeconds(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
