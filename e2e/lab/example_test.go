package lab_test

import (
	"context"
	"fmt"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// A scenario: the plugin under a controller, a rollback of which only two pods
// ever become ready.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	err := func() error {
		plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{})
		if err != nil {
			return err
		}
		l, err := lab.Start(ctx, lab.Options{})
		if err != nil {
			return err
		}
		defer l.Stop()
		c, err := l.StartController(ctx, lab.ControllerOptions{InstanceID: "guarded", PluginPath: plugin})
		if err != nil {
			return err
		}

		namespace, err := l.Namespace(ctx, "rollback")
		if err != nil {
			return err
		}
		// The Rollout's pod template has the annotation lab/gate: "true".
		gate, err := l.Gate(ctx, namespace)
		if err != nil {
			return err
		}
		rollout := `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, labels: %s}, …}`
		manifests := fmt.Appendf(nil, rollout, c.Labels())
		if _, err := l.Apply(ctx, namespace, manifests); err != nil {
			return err
		}
		return gate.Limit("rollouts-pod-template-hash=6d4f8", 2)
	}()
	fmt.Println(err)
}
