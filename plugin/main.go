// Command rollouts-plugin-trafficrouter-istio is the traffic router plugin of
// Argo Rollouts for Istio. The Argo Rollouts controller starts it; this package
// only wires the rooms of pkg together.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cli"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/metrics"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/rpcedge"
)

const name = "rollouts-plugin-trafficrouter-istio"

// Exit codes: 0 asked and answered, 1 cannot serve, 2 wrong usage.
const (
	exitFailed = 1
	exitUsage  = 2
)

// handshake is what the controller and its traffic router plugins agree on.
var handshake = goplugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "ARGO_ROLLOUTS_RPC_PLUGIN",
	MagicCookieValue: "trafficrouter",
}

func main() { os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// run returns the exit code. Once it serves, stdout belongs to the handshake. Only
// where the controller has not started it is it a command for people.
func run(args []string, env func(string) string, stdout, stderr io.Writer) int {
	byController := env(handshake.MagicCookieKey) == handshake.MagicCookieValue
	if !byController && cli.Asked(os.Args[0], args) {
		return command(args, env, stdout, stderr)
	}
	flags, o := newFlags()
	err := flags.Parse(args)
	if err == nil {
		err = o.check(flags)
	}
	if err != nil {
		refuse(err, byController, stderr)
		return exitUsage
	}
	switch {
	case o.help:
		fmt.Fprint(stdout, usage(flags))
		return 0
	case o.version:
		fmt.Fprintln(stdout, versionLine())
		return 0
	case !byController:
		fmt.Fprint(stderr, byHand())
		return exitUsage
	}
	log := newLogger(o.level, stderr)
	if err := serve(o, log); err != nil {
		log.Error("cannot serve", "error", err)
		return exitFailed
	}
	return 0
}

// refuse tells of wrong flags. The controller takes lines that are no log of hclog's for
// debug output, which nobody sees.
func refuse(err error, byController bool, stderr io.Writer) {
	if byController {
		newLogger(hclog.Info, stderr).Error("cannot serve with these args", "error", err)
		return
	}
	fmt.Fprintf(stderr, "%s: %v\nRun it with --help for the list of flags.\n", name, err)
}

// command is the program as a person runs it.
func command(args []string, env func(string) string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return cli.Run(ctx, args, cli.Program{
		Name: os.Args[0], Version: versionLine(),
		In: os.Stdin, Out: stdout, Err: stderr, Colour: cli.Terminal(stdout, env),
	})
}

// gcPercent is how much garbage there may be before it is collected, in percent of what
// is in use. Go's own is 100. The plugin has little to do and, with thousands of
// Rollouts, much to keep (docs/benchmarks.md).
const gcPercent = 50

// serve blocks until the controller ends the process.
func serve(o *options, log hclog.Logger) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	config, err := restConfig(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := serveMetrics(ctx, o.metricsAddress, log)
	o.cluster.Written, o.cluster.Conflict, o.cluster.Heard = m.Written, m.Conflict, m.Heard
	c, err := cluster.New(config, o.cluster, log)
	if err != nil {
		return err
	}
	o.router.Recorder = m
	if client := istiodClient(ctx, o, log); client != nil {
		o.router.Mesh = client
	}
	desk := prometheus.NewDesk(prometheus.New(o.prometheus))
	o.router.Health = desk
	r := router.New(c, o.router, log)
	desk.OnAnswered(r.HealthAnswered)
	c.OnPodsChanged(r.PodsChanged)
	c.OnExperimentPodsChanged(r.ExperimentPodsChanged)
	c.OnRoutingChanged(r.RoutingChanged)
	go r.Watch(ctx)
	log.Info("started", "version", versionLine())
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: handshake,
		Logger:          log,
		Plugins: map[string]goplugin.Plugin{"RpcTrafficRouterPlugin": &rpc.RpcTrafficRouterPlugin{Impl: &rpcedge.Server{
			Name:    name,
			Ready:   c.Ready,
			Router:  r,
			Called:  r.Called,
			Observe: m.RPC,
			Timeout: o.rpcTimeout,
			Log:     log,
		}}},
	})
	return nil
}

// serveMetrics returns nil, which records nothing, unless somebody wants metrics.
func serveMetrics(ctx context.Context, address string, log hclog.Logger) *metrics.Metrics {
	if address == "" {
		return nil
	}
	m := metrics.New()
	m.Busy = func(err error) { log.Warn("metrics wait", "error", err) }
	go func() {
		if err := m.Serve(ctx, address); err != nil {
			log.Error("no metrics are served, all else goes on", "error", err)
		}
	}()
	return m
}

// restConfig finds the API server as kubectl does; in a Pod without a
// kubeconfig that is the service account of the controller.
func restConfig(o *options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server (--kubeconfig, KUBECONFIG, or the Pod's service account): %w", err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	config.UserAgent = name + "/" + buildVersion()
	return config, nil
}
