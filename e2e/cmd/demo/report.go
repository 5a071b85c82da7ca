package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// measures are those of both routers in one story.
type measures struct{ native, plugin timeline.Measures }

func (p pair) measure() measures { return measures{p.native.Measure(), p.plugin.Measure()} }

// incidentIntro says what will be seen, before it takes a minute to be played.
func incidentIntro(o options) string {
	return fmt.Sprintf(`
PART 1: THE ROLLBACK
A Rollout of %d replicas, with its traffic split between two %s, goes from version 1 to version 2
and is then rolled back to 1 within its rollbackWindow: the controller skips the steps and asks for 100 %% at once.
Of the %d pods only %d become ready at first, and the others %s later.
Both routers play this at the same time, in one lab and under one controller, and roll back at the same moment: a busy
machine slows both down alike.

`, o.replicas, sides(o.level), o.replicas, o.ready, inSeconds(o.wait))
}

func canaryIntro(o options) string {
	return fmt.Sprintf(`
PART 2: A PLAIN CANARY
10 %%, 50 %%, 100 %% of %d pods, with pauses of 1 s and pods that become ready by themselves. Again both at the same time.

`, o.replicas)
}

func flappingIntro(o options) string {
	return fmt.Sprintf(`
PART 3: A FLAPPING POD
A canary of %d replicas rests at 50 %%. One of its pods fails its readiness probe for a second and passes it for a second,
%d times. Again both at the same time.

`, o.replicas, o.flaps)
}

func sides(l scenarios.Level) string {
	if l == scenarios.Host {
		return "Services"
	}
	return "subsets of one Service"
}

// writeIncident writes the two timelines, which begin with the rollback, side by
// side, and what they mean.
func writeIncident(w io.Writer, p pair) error {
	fmt.Fprintf(w, "\nThe rollback, from the moment at which it was asked for:\n\n")
	titles := [2]string{"native Istio router, controller " + lab.DefaultVersion, "this plugin, same controller"}
	if err := timeline.SideBySide(w, p.native, p.plugin, titles); err != nil {
		return err
	}
	_, err := io.WriteString(w, incidentVerdict(p.measure()))
	return err
}

// incidentVerdict puts the measures into plain words. It says what was
// measured, also where that is not what one would like to see.
func incidentVerdict(m measures) string {
	var b strings.Builder
	b.WriteString("\nIN SHORT\n")
	for _, r := range []struct {
		name string
		timeline.Measures
	}{{"native router", m.native}, {"this plugin", m.plugin}} {
		fmt.Fprintf(&b, "  %-14s finished %s; %s; %s\n", r.name, finish(r.Measures), overload(r.Measures), missing(r.Measures))
	}
	if m.plugin.Canary.Points < m.native.Canary.Points {
		fmt.Fprintf(&b, "  The plugin let the weight follow the pods; %s\n", compared(m))
	}
	return b.String()
}

// flappingVerdict sets what the traffic gained beside what it cost: each write of
// a VirtualService is a push to every proxy in its scope.
func flappingVerdict(m measures) string {
	var b strings.Builder
	b.WriteString("\nIN SHORT\n")
	for _, r := range []struct {
		name string
		timeline.Measures
	}{{"native router", m.native}, {"this plugin", m.plugin}} {
		fmt.Fprintf(&b, "  %-14s %s; %s; %s\n", r.name, writes(r.Measures), overload(r.Measures), missing(r.Measures))
	}
	return b.String()
}

func writes(m timeline.Measures) string {
	n := m.WritesOf(timeline.KindVirtualService)
	if n == 1 {
		return "1 write of the VirtualService"
	}
	return fmt.Sprintf("%d writes of the VirtualService", n)
}

func overload(m timeline.Measures) string {
	if m.Canary.Points == 0 {
		return "never more traffic than the pods can take"
	}
	return fmt.Sprintf("up to %.0f points more traffic than the pods can take, for %s", m.Canary.Points, inSeconds(m.Canary.Lasted))
}

func missing(m timeline.Measures) string {
	if m.Missing.Wall == 0 {
		return "none to missing pods"
	}
	return fmt.Sprintf("%s of full traffic to missing pods", inSeconds(m.Missing.Traffic))
}

func finish(m timeline.Measures) string {
	if !m.Finished {
		return "never"
	}
	return "after " + inSeconds(m.Finish)
}

// compared tells who finished first.
func compared(m measures) string {
	if !m.native.Finished || !m.plugin.Finished {
		return "not both finished."
	}
	switch gain := m.native.Finish - m.plugin.Finish; {
	case gain > noise:
		return fmt.Sprintf("that cost no time: it finished %s earlier.", inSeconds(gain))
	case gain < -noise:
		return fmt.Sprintf("that cost time: it finished %s later.", inSeconds(-gain))
	default:
		return "it finished at the same time."
	}
}

// noise is what two equal runs on one machine differ by.
const noise = time.Second / 2

// canaryVerdict is the result of the second part.
func canaryVerdict(m measures) string {
	text := fmt.Sprintf("\nIN SHORT\n  The native router finished %s, this plugin %s", finish(m.native), finish(m.plugin))
	if m.native.Finished && m.plugin.Finished && m.plugin.Finish > 0 {
		text += fmt.Sprintf(": the plugin was %.1f times as fast", m.native.Finish.Seconds()/m.plugin.Finish.Seconds())
	}
	return text + ".\n"
}

// inSeconds shows times below a second in milliseconds: 20 ms is not none.
func inSeconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', -1, 64) + " s"
}
