package scenarios

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/timeline"
)

// ownController starts a controller for one test that does it harm.
func ownController(t *testing.T, options lab.ControllerOptions) *lab.Controller {
	t.Helper()
	options.PluginPath = pluginPath
	c, err := shared.StartController(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c
}

func TestAPluginKilledInMidCanaryIsBackAtTheNextReconcile(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		signal := syscall.SIGKILL
		if level == Subset {
			signal = syscall.SIGQUIT // at which the runtime writes what it knows
		}
		c := ownController(t, lab.ControllerOptions{InstanceID: "killed-" + string(level)})
		w := canary(level, SetWeight(10), Pause(3), SetWeight(50), Pause(3), SetWeight(100))
		recorded := play(t, c, w, func(ctx context.Context, s *Scene) error {
			if err := atWeight(ctx, s, 10); err != nil {
				return err
			}
			if _, err := c.KillPlugin(signal); err != nil {
				return err
			}
			return promoted(ctx, s, "upgrade")
		})
		if log := c.Tail(1, "SIGQUIT: quit"); signal == syscall.SIGQUIT && log == "" {
			t.Error("what the plugin's runtime wrote is not in the controller's log: a data race would not be seen there either")
		}
		hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
		endsPromoted(t, recorded)
	})
}

func TestAPluginThatStartsWithoutTheAPIServerWorksOnceItIsThere(t *testing.T) {
	t.Parallel()
	proxy, err := shared.Proxy()
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	proxy.Cut()
	c := ownController(t, lab.ControllerOptions{InstanceID: "cut-off", PluginThrough: proxy})
	w := canary(Host, SetWeight(50), Pause(1), SetWeight(100))
	recorded := play(t, c, w, func(ctx context.Context, s *Scene) error {
		// Long enough for the controller to start the plugin and to fail with it.
		if err := sleep(ctx, 5*time.Second); err != nil {
			return err
		}
		s.Mark("restored")
		proxy.Restore()
		if _, err := s.AwaitPhase(ctx, "restored", "Healthy"); err != nil {
			return err
		}
		if err := s.Deploy(ctx, "upgrade", 2); err != nil {
			return err
		}
		return promoted(ctx, s, "upgrade")
	})
	hold(t, recorded, limits("upgrade", "Healthy", time.Minute))
	upgrade, err := recorded.Since("upgrade")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := weightsSeen(upgrade), []int32{50, 100, 0}; !timeline.FollowSteps(got, want) {
		t.Errorf("canary weights were %v, want %v", got, want)
	}
}
