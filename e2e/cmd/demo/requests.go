package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/namespace"
)

// pluginVariable is the path of the plugin's binary, for the program that runs in
// the network namespace: there is no network there to build from.
const pluginVariable = "ROLLOUTS_DEMO_PLUGIN"

// apart plays the last part in a network namespace, which is another run of this
// program. Where the kernel does not let this user make one, it says so, and the
// other parts have been shown.
func apart(ctx context.Context, o options, out io.Writer) error {
	if err := lab.Build(ctx, out, mesh.Programs()...); err != nil {
		return err
	}
	plugin, err := lab.BuildPlugin(ctx, lab.PluginOptions{Progress: out})
	if err != nil {
		return err
	}
	if err := os.Setenv(pluginVariable, plugin); err != nil {
		return err
	}
	fmt.Fprint(out, requestsIntro(o))
	code, err := namespace.Run()
	if err != nil {
		fmt.Fprintf(out, "This part cannot be played here: %v\n", err)
		return nil
	}
	if code != 0 {
		return fmt.Errorf("part 4 ended with code %d", code)
	}
	return nil
}

// requests plays the rollback with real requests; it runs in the namespace.
func requests(ctx context.Context, o options, out io.Writer) (err error) {
	stage, err := mesh.Open(ctx, mesh.Options{Plugin: os.Getenv(pluginVariable), Progress: out, KeepFiles: o.keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	native, plugin, err := stage.Both(ctx, mesh.Incident(o.level))
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, requestsVerdict(native.Row(), plugin.Row()))
	return err
}

func requestsIntro(o options) string {
	return fmt.Sprintf(`
PART 4: REAL REQUESTS
The same rollback between two %s, of 20 pods with 2 ready at first, now with istiod, with pods that
answer, and with gRPC clients that go by what istiod tells them. They send 96 requests a second; each pod can take 14.
Again both at the same time.

`, sides(o.level))
}

// requestsVerdict counts what was lost.
func requestsVerdict(native, plugin mesh.Row) string {
	var b strings.Builder
	b.WriteString("\nIN SHORT\n")
	for _, r := range []struct {
		name string
		mesh.Row
	}{{"native router", native}, {"this plugin", plugin}} {
		fmt.Fprintf(&b, "  %-14s %s\n", r.name, lost(r.Row))
	}
	return b.String()
}

func lost(r mesh.Row) string {
	if r.Lost == 0 {
		return fmt.Sprintf("none of %d requests was lost", r.Sent)
	}
	return fmt.Sprintf("%d of %d requests were lost, in the worst second %.0f %%", r.Lost, r.Sent, 100*r.Worst.Share())
}
