package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode is what the guard does with its decisions.
type Mode string

// The modes. There are no others.
const (
	// Enforce caps the canary's weight. It is the default.
	Enforce Mode = "Enforce"
	// Observe decides and reports, and writes the weight that the controller asked
	// for.
	Observe Mode = "Observe"
	// Off does not decide.
	Off Mode = "Off"
)

const (
	defaultMinRaisePercent = 5
	defaultSettle          = time.Second
	// defaultProgressDeadline is the controller's own default for
	// progressDeadlineSeconds.
	defaultProgressDeadline = 600 * time.Second
)

// span bounds a duration; words is how a report puts it.
type span struct {
	least, most time.Duration
	words       string
}

// A settle beyond a minute, or a hold beyond a day, is a slip in the unit rather
// than a wish.
var (
	settleSpan  = span{0, time.Minute, `"0s" to "60s"`}
	maxHoldSpan = span{time.Second, 24 * time.Hour, `"1s" to "24h"`}
)

// Guard is how the canary's weight is capped by the pods that are available.
type Guard struct {
	Mode Mode
	// MinRaise is the smallest rise of a capped weight that is worth a write, in
	// parts of maxTrafficWeight: 0 to maxTrafficWeight. Default: 5 % of it,
	// rounded up. Falls, and a rise to the full weight, are always written.
	MinRaise int32
	// Settle is how long a weight of 0 is given to reach the proxies before the
	// canary's label moves: 0 to 60 s, default 1 s.
	Settle time.Duration
	// MaxHold is how long a cap may hold a reconcile: 1 s to 24 h. Default: the
	// Rollout's progressDeadlineSeconds whatever its size, 600 s without one.
	MaxHold time.Duration
}

// guard reads the guard's part, which may be missing altogether.
func (c *checker) guard(block object, s scope) Guard {
	g := Guard{
		Mode:     Enforce,
		MinRaise: percentOf(defaultMinRaisePercent, s.maxWeight),
		Settle:   defaultSettle,
		MaxHold:  s.deadline,
	}
	n, ok := block.find("guard")
	if !ok {
		return g
	}
	o, ok := c.object(n, block.at.Child("guard"), guardFields)
	if !ok {
		return g
	}
	if mode, p := o.text("mode"); p == given {
		g.Mode = Mode(c.oneOf(mode, o.at.Child("mode"), "mode", string(Enforce), string(Observe), string(Off)))
	}
	if n, ok := o.find("minRaise"); ok {
		g.MinRaise = c.minRaise(n, o.at.Child("minRaise"), s.maxWeight)
	}
	g.Settle = o.duration("settle", g.Settle, settleSpan)
	g.MaxHold = o.duration("maxHold", g.MaxHold, maxHoldSpan)
	return g
}

// minRaise reads a number of parts, or a percentage as a string.
func (c *checker) minRaise(n node, at *field.Path, maxWeight int32) int32 {
	switch n.kind {
	case kindNumber:
		if parts, err := strconv.ParseInt(n.text, 10, 32); err == nil && parts >= 0 && parts <= int64(maxWeight) {
			return int32(parts)
		}
	case kindString:
		if digits, ok := strings.CutSuffix(n.text, "%"); ok {
			if percent, err := strconv.ParseUint(digits, 10, 32); err == nil && percent <= 100 {
				return percentOf(int64(percent), maxWeight)
			}
		}
	}
	c.add(field.Invalid(at, n.sketch(), fmt.Sprintf(
		`must be a whole number of parts from 0 to %d (maxTrafficWeight), or a whole percentage such as "5%%"`, maxWeight)))
	return 0
}

// percentOf rounds up, so that no percentage above 0 turns into a rise of 0.
func percentOf(percent int64, maxWeight int32) int32 {
	return int32((percent*int64(maxWeight) + 99) / 100)
}

// duration reads a span such as "1.5s". A bare number is refused: elsewhere in a
// Rollout it means seconds, in most Go configurations nanoseconds.
func (o object) duration(name string, otherwise time.Duration, bounds span) time.Duration {
	n, ok := o.find(name)
	if !ok {
		return otherwise
	}
	at := o.at.Child(name)
	if n.kind == kindString {
		d, err := time.ParseDuration(n.text)
		if err == nil && d >= bounds.least && d <= bounds.most {
			return d
		}
	}
	o.c.add(field.Invalid(at, n.sketch(), "must be a string with a duration and its unit, from "+bounds.words))
	return otherwise
}

// progressDeadline is the controller's deadline for this Rollout. The controller
// refuses a Rollout whose deadline is not positive; should one reach us, the
// default is the safe reading.
func progressDeadline(ro *v1alpha1.Rollout) time.Duration {
	if seconds := ro.Spec.ProgressDeadlineSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return defaultProgressDeadline
}
