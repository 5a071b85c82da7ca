package main

import (
	"fmt"
	"io"
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
A Rollout of %d replicas, split between two %s, goes from version 1 to version 2 and is then rolled back to 1,
within its rollbackWindow: the controller skips the steps and asks for 100 %% at once. Only %d of %d pods become ready,
for %s; then the others. Both routers play it at the same time, in this lab and under this controller, and begin the
rollback at the same moment, so that both find the machine equally busy.
`, o.replicas, sides(o.level), o.ready, o.replicas, o.wait)
}

func canaryIntro(o options) string {
	return fmt.Sprintf(`
PART 2: A PLAIN CANARY
10 %%, 50 %%, 100 %% of %d pods, with pauses of 1 s and pods that become ready at once. Again both at the same time.
`, o.replicas)
}

func sides(l scenarios.Level) string {
	if l == scenarios.Host {
		return "Services"
	}
	return "subsets of one Service"
}

// writeIncident writes the two timelines, which begin with the rollback, side by
// side, and what they mean.
func writeIncident(w io.Writer, o options, p pair) error {
	fmt.Fprintf(w, "\nThe rollback, from the moment at which it was asked for:\n\n")
	titles := [2]string{"native Istio router, controller " + lab.DefaultVersion, "this plugin, same controller"}
	if err := timeline.SideBySide(w, p.native, p.plugin, titles); err != nil {
		return err
	}
	_, err := io.WriteString(w, incidentVerdict(o, p.measure()))
	return err
}

// incidentVerdict puts the measures into plain words. It says what was
// measured, also where that is not what one would like to see.
func incidentVerdict(o options, m measures) string {
	var b strings.Builder
	b.WriteString("\nIn short\n")
	fmt.Fprintf(&b, "  Overload:  %s\n", versus(m, overload))
	fmt.Fprintf(&b, "  No pods:   %s\n", versus(m, missing))
	fmt.Fprintf(&b, "  Finished:  %s\n", versus(m, finish))
	if o.ready < int(o.replicas) && m.plugin.Canary.Points < m.native.Canary.Points {
		fmt.Fprintf(&b, "  The plugin let the weight follow the pods; %s\n", compared(m))
	}
	return b.String()
}

// versus tells one measure of both.
func versus(m measures, tell func(timeline.Measures) string) string {
	return fmt.Sprintf("native %s; plugin %s.", tell(m.native), tell(m.plugin))
}

func overload(m timeline.Measures) string {
	if m.Canary.Points == 0 {
		return "never sent more to the rollback's pods than they can take"
	}
	return fmt.Sprintf("sent up to %.0f points more of all traffic than the pods can take, for %s", m.Canary.Points, inSeconds(m.Canary.Lasted))
}

func missing(m timeline.Measures) string {
	if m.Missing.Wall == 0 {
		return "sent nothing to a side without a pod"
	}
	return fmt.Sprintf("sent %s worth of full traffic to a side without a pod", inSeconds(m.Missing.Traffic))
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
	if !m.native.Finished || !m.plugin.Finished || m.plugin.Finish <= 0 {
		return fmt.Sprintf("\nIn short\n  Finished:  %s\n", versus(m, finish))
	}
	return fmt.Sprintf("\nIn short\n  Finished:  %s\n  The plugin was %.1f times as fast. The native router waits in the controller's growing back-off.\n",
		versus(m, finish), m.native.Finish.Seconds()/m.plugin.Finish.Seconds())
}

// inSeconds shows times below a second in milliseconds: 20 ms is not none.
func inSeconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
