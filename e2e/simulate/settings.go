package simulate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/cmdline"
)

// MaxReplicas is the largest Rollout that is played: more would fill a small machine.
const MaxReplicas = 200

// Settings say how to play. [Defaults] are those of the command.
type Settings struct {
	// Rollout is the one to play, as "name" or "namespace/name"; empty if there is only
	// one.
	Rollout string
	// PluginName is the key under trafficRouting.plugins that is the plugin's.
	PluginName string

	// Pause is the longest that a pause step lasts, 1 s to 1 min; minReadySeconds and
	// scaleDownDelaySeconds are shortened to it as well.
	Pause time.Duration
	// Replicas stands for spec.replicas; 0 leaves that as it is.
	Replicas int32

	// Startup is the time from a pod's start until it is ready, Spread what it takes
	// until the last of all pods of a revision are: they come one after another.
	Startup, Spread time.Duration
	// Failing is how many pods of the revision that comes never become ready. In a
	// rollback that is the old one.
	Failing Amount
	// Broken is how many pods of the revision that is left fail their readiness probe
	// when a rollback begins.
	Broken Amount

	// Revisions is how many revisions a rollback goes back, at least 1.
	Revisions int
	// At is the index of the step at which a scenario interferes, as in
	// status.currentStepIndex; negative lets it choose. ScaleAt is that of Scale.
	At, ScaleAt int
	// ScaleTo is the size that Scale asks for; 0 is twice the replicas.
	ScaleTo int32

	// Timeout bounds one scenario with all that comes before it.
	Timeout time.Duration
}

// Defaults are the settings that nobody changed.
func Defaults() Settings {
	return Settings{
		Pause: 3 * time.Second, Startup: 2 * time.Second, Spread: 5 * time.Second,
		Revisions: 1, At: -1, ScaleAt: -1, Timeout: 3 * time.Minute,
	}
}

// Validate reports all settings that are out of their range.
func (s Settings) Validate() error {
	var f cmdline.Faults
	f.Need(s.Pause >= time.Second && s.Pause <= time.Minute, "--pause %s: use 1s to 1m", s.Pause)
	f.Need(s.Startup >= 0 && s.Startup <= time.Minute, "--startup %s: use 0s to 1m", s.Startup)
	f.Need(s.Spread >= 0 && s.Spread <= time.Minute, "--spread %s: use 0s to 1m", s.Spread)
	f.Need(s.Replicas >= 0 && s.Replicas <= MaxReplicas, "--replicas %d: use 1 to %d", s.Replicas, MaxReplicas)
	f.Need(s.ScaleTo >= 0 && s.ScaleTo <= MaxReplicas, "--scale-to %d: use 1 to %d", s.ScaleTo, MaxReplicas)
	f.Need(s.Revisions >= 1 && s.Revisions <= 5, "--revisions %d: use 1 to 5", s.Revisions)
	f.Need(s.Timeout >= 10*time.Second, "--timeout %s: use 10s or more", s.Timeout)
	return f.Err()
}

// ready is how long all pods of a revision take to be ready.
func (s Settings) ready() time.Duration { return s.Startup + s.Spread }

// Amount is a number of pods, or a share of all of them. The zero value is none. It is
// a pflag.Value.
type Amount struct {
	n       int
	percent bool
}

// Set reads "3" or "30%". The error says what is taken.
func (a *Amount) Set(text string) error {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || percent && n > 100 {
		return fmt.Errorf("%q is neither a number of pods nor 0%% to 100%%", text)
	}
	*a = Amount{n, percent}
	return nil
}

// String is what Set reads.
func (a Amount) String() string {
	if a.percent {
		return fmt.Sprintf("%d%%", a.n)
	}
	return strconv.Itoa(a.n)
}

// Type is the word that stands for the value in a list of flags.
func (a Amount) Type() string { return "N|N%" }

// of is how many of that many pods are meant, rounded up and at most all.
func (a Amount) of(pods int32) int32 {
	n := float64(a.n)
	if a.percent {
		n = math.Ceil(n * float64(pods) / 100)
	}
	return int32(min(n, float64(pods)))
}
