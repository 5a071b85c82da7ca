package bench

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

// child starts a plugin as the controller does, until the benchmark ends.
func child(b *testing.B, path string, args ...string) rpc.TrafficRouterPlugin {
	b.Helper()
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: 1, MagicCookieKey: "ARGO_ROLLOUTS_RPC_PLUGIN", MagicCookieValue: "trafficrouter",
		},
		Plugins: map[string]goplugin.Plugin{"RpcTrafficRouterPlugin": &rpc.RpcTrafficRouterPlugin{}},
		Cmd:     exec.Command(path, args...),
		Logger:  hclog.NewNullLogger(),
	})
	b.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		b.Fatal(err)
	}
	dispensed, err := protocol.Dispense("RpcTrafficRouterPlugin")
	if err != nil {
		b.Fatal(err)
	}
	p := dispensed.(rpc.TrafficRouterPlugin)
	if err := p.InitPlugin(); err.HasError() {
		b.Fatal(err)
	}
	return p
}

// plugin builds the plugin as people get it and starts it with its defaults.
func plugin(b *testing.B, s *server) rpc.TrafficRouterPlugin {
	b.Helper()
	path, err := lab.BuildPlugin(b.Context(), lab.PluginOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return child(b, path, "--kubeconfig="+s.kubeconfig, "--plugin-name="+pluginName)
}

// empty builds the plugin that answers at once and starts it.
func empty(b *testing.B) rpc.TrafficRouterPlugin {
	b.Helper()
	path := filepath.Join(b.TempDir(), "empty")
	if _, err := goCommand(b.Context(), "build", "-ldflags", "-s -w", "-o", path, "./empty"); err != nil {
		b.Fatal(err)
	}
	return child(b, path)
}

// reconcile makes the calls of one reconcile in the controller's order and
// returns the first error that is answered.
func reconcile(p rpc.TrafficRouterPlugin, ro *v1alpha1.Rollout, weight int32) error {
	p.Type()
	if err := p.RemoveManagedRoutes(ro); err.HasError() {
		return fmt.Errorf("RemoveManagedRoutes: %w", err)
	}
	if err := p.UpdateHash(ro, canaryHash, stableHash, nil); err.HasError() {
		return fmt.Errorf("UpdateHash: %w", err)
	}
	if err := p.SetWeight(ro, weight, nil); err.HasError() {
		return fmt.Errorf("SetWeight: %w", err)
	}
	verified, err := p.VerifyWeight(ro, weight, nil)
	if err.HasError() {
		return fmt.Errorf("VerifyWeight: %w", err)
	}
	if verified != types.Verified {
		return fmt.Errorf("VerifyWeight: the weight %d is not verified", weight)
	}
	return nil
}

// settle reconciles until the plugin is ready and has nothing left to do.
func settle(b *testing.B, p rpc.TrafficRouterPlugin, ro *v1alpha1.Rollout, weight int32) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	var last error
	err := lab.Until(ctx, "a reconcile without errors", func(context.Context) (bool, error) {
		last = reconcile(p, ro, weight)
		return last == nil, nil
	})
	if err != nil {
		b.Fatalf("%v; last: %v", err, last)
	}
}
