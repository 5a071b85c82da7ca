package main

import (
	"fmt"
	"io"
	stdlog "log"
	"strings"

	"github.com/go-logr/logr/funcr"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cli"
)

// byHand is what a person reads who starts the binary without the controller.
func byHand() string {
	return register + "\nCommands for people, each with its own --help:\n\n" + cli.Summaries()
}

const register = name + ` is a plugin of Argo Rollouts and is started by its controller, not by hand.

Register it in the ConfigMap argo-rollouts-config of the controller's namespace:

  data:
    trafficRouterPlugins: |-
      - name: argoproj-labs/istio
        location: https://…/rollouts-plugin-trafficrouter-istio-linux-amd64   # or file:///path/in/the/controller's/pod
        sha256: …                                                             # from the release's checksums file

then restart the controller and name it in a Rollout under
spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"].

--help lists the flags, which go under "args" of the same entry; --version says what this is.
`

func usage(flags *pflag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nFlags (each as one item of \"args\" in the ConfigMap):\n%s", strings.TrimSpace(byHand()), flags.FlagUsages())
	return b.String()
}

// newLogger writes what the controller understands: hclog's JSON on stderr, so
// that levels survive. client-go's own log goes the same way.
func newLogger(level hclog.Level, stderr io.Writer) hclog.Logger {
	log := hclog.New(&hclog.LoggerOptions{Name: name, Level: level, Output: stderr, JSONFormat: true})
	// go-plugin says a few things through the standard logger.
	stdlog.SetFlags(0)
	stdlog.SetOutput(log.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))
	client := log.Named("client-go")
	klog.SetLogger(funcr.New(func(_, text string) { client.Debug("client-go", "text", text) }, funcr.Options{}))
	return log
}
