package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
)

// inspectFlags are the choices of one inspect.
type inspectFlags struct {
	target    clusterFlags
	output    string
	threshold string
	watch     bool
	interval  time.Duration
	events    int

	plugin, domain, allowed string
	istiod                  mesh.Options
}

const inspectLong = `Tell what a Rollout that the plugin routes waits for, and why: its step, the weight that is asked for, written and
allowed, each route, where each side leads, its last Events and, with --istiod-address, what istiod serves.

It judges by the plugin's own code, and changes nothing. What only the running plugin remembers is said to be so.
READY/WANTED are a side's available pods, and how many the Rollout wants there at this step; what its ReplicaSet is
scaled to meanwhile stands beside. Without a name it says which Rollouts of the namespace there are.

Exit codes: 0 fine, 1 findings at or above --failure-threshold (as while the canary is held), 2 could not run: no such
Rollout, one that the plugin does not route, a right that is missing (what can be read is shown). With --watch: 0 when it
is interrupted.`

const inspectExample = `  # one screen
  %[1]s inspect -n shop web

  # follow it
  %[1]s inspect -n shop web --watch

  # with what istiod serves, by way of
  #   kubectl -n istio-system port-forward deploy/istiod 15010
  %[1]s inspect -n shop web --istiod-address localhost:15010 --istiod-plaintext

  # for a script
  %[1]s inspect -n shop web -o json | jq -r .waiting`

func inspectCommand(p *Program) *cobra.Command {
	f := &inspectFlags{}
	c := &cobra.Command{
		Use:     "inspect ROLLOUT",
		Short:   "Tell what a Rollout of a cluster waits for, and why",
		Long:    inspectLong,
		Example: fmt.Sprintf(inspectExample, CommandName(p.Name)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return p.askForName(c, f, len(args))
			}
			return p.inspect(c, f, args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	f.target.bind(flags)
	flags.StringVarP(&f.output, "output", "o", defaults, "table, json or yaml")
	flags.BoolVarP(&f.watch, "watch", "w", false, "look again and again, in place on a terminal")
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "with --watch: how long between two looks")
	flags.IntVar(&f.events, "events", 10, "how many of the last Events to show")
	flags.StringVar(&f.threshold, "failure-threshold", lint.Warning.String(), "the least severity that makes the exit code 1: error, warning or info")
	flags.StringVar(&f.plugin, "plugin-name", config.DefaultPluginName, "the name under which the plugin is registered")
	flags.StringVar(&f.allowed, "allow-cross-namespace", "*", "what the plugin's own flag says: off, namespaces with commas between them, or *")
	flags.StringVar(&f.domain, "cluster-domain", "cluster.local", "the cluster's DNS domain")
	flags.StringVar(&f.istiod.Address, "istiod-address", "", "istiod's host:port; empty: istiod is not asked")
	flags.BoolVar(&f.istiod.Plaintext, "istiod-plaintext", false, "speak to istiod without TLS and token, for its port 15010")
	flags.StringVar(&f.istiod.TokenFile, "istiod-token-file", mesh.DefaultTokenFile, "path of a service account's token for the audience istio-ca")
	flags.StringVar(&f.istiod.RootCertFile, "istiod-root-cert", mesh.DefaultRootCertFile, "path of the certificates that istiod's is signed with")
	flags.StringVar(&f.istiod.ServerName, "istiod-server-name", mesh.DefaultServerName, "the name that istiod's certificate is for")
	flags.StringVar(&f.istiod.Cluster, "istiod-cluster", "", "the mesh's name of this cluster, for a mesh of several; empty: Kubernetes, as Istio has it")
	return c
}

func (p *Program) inspect(c *cobra.Command, f *inspectFlags, name string) error {
	options, threshold, form, err := f.parse(c, name)
	if err != nil {
		return err
	}
	from, err := p.openInspect(f.target)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	if f.istiod.Address != "" {
		client := mesh.New(f.istiod, quiet())
		go client.Run(ctx)
		options.Router.Mesh = client
	}
	options.Now = p.now
	look := p.looking(ctx, from, options, name)
	if f.watch {
		w := &inspectWatch{p: p, interval: f.interval, form: form, screen: screenOf(p.Out)}
		return w.run(ctx, look)
	}
	report, err := look()
	if err != nil {
		return err
	}
	if err := p.printInspect(p.Out, form, report); err != nil {
		return err
	}
	return verdict(report, threshold)
}

// verdict is what a report that has been printed means for the exit code: with something that
// could not be read, nobody knows whether there are findings.
func verdict(report inspect.Report, threshold lint.Severity) error {
	switch {
	case report.Unread != "":
		return fmt.Errorf("not all can be told of Rollout %s/%s: %s", report.Namespace, report.Name, report.Unread)
	case report.Worst() >= threshold:
		return errFindings
	}
	return nil
}

// looking is one look. The first has a word if it takes long: of later ones a watch tells.
func (p *Program) looking(ctx context.Context, from selectingReader, options inspect.Options, name string) func() (inspect.Report, error) {
	look := func() (report inspect.Report, err error) {
		seen, err := inspect.Look(ctx, from, options, from.Namespace(), name)
		if err == nil {
			report = inspect.Compose(seen)
		}
		return report, err
	}
	looked := false
	return func() (report inspect.Report, err error) {
		if looked {
			return look()
		}
		looked = true
		_ = p.during(fmt.Sprintf("looking at Rollout %s/%s", from.Namespace(), name), func() error {
			report, err = look()
			return err
		})
		return report, err
	}
}

func (p *Program) printInspect(out io.Writer, form format, report inspect.Report) error {
	return form.write(out, report, func(out io.Writer) { report.Table(out, p.paint) })
}

// parse refuses wrong flags before anything is read.
func (f *inspectFlags) parse(c *cobra.Command, name string) (inspect.Options, lint.Severity, format, error) {
	options := inspect.Options{Events: f.events, Router: router.Options{
		ClusterDomain: f.domain,
		// What the operator allows is the running plugin's to say.
		Config: config.Options{PluginName: f.plugin, Prometheus: config.PrometheusAddresses{Default: "http://prometheus.example:9090", Any: true}},
	}}
	threshold, err := lint.ParseSeverity(f.threshold)
	if err != nil {
		return options, 0, "", fmt.Errorf("--failure-threshold: %w", err)
	}
	form, err := parseFormat(f.output)
	if err != nil {
		return options, 0, "", err
	}
	if options.Router.Config.CrossNamespace, err = config.ParseCrossNamespace(f.allowed); err != nil {
		return options, 0, "", err
	}
	f.istiod.ClusterDomain = f.domain
	return options, threshold, form, errors.Join(f.checkNames(name), f.checkRanges(), f.checkIstiod(c))
}

func (f *inspectFlags) checkNames(name string) error {
	switch {
	case f.target.Namespace != "" && len(validation.IsDNS1123Label(f.target.Namespace)) > 0:
		return fmt.Errorf("-n %q is no namespace: it takes lower-case letters, digits and -", f.target.Namespace)
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("%q is no name of a Rollout: that takes lower-case letters, digits, dots and -", name)
	case f.plugin == "":
		return errors.New("--plugin-name is empty: give the name under which the plugin is registered")
	}
	return nil
}

// leastInterval keeps a person from burdening the API server by a slip.
const leastInterval = 100 * time.Millisecond

func (f *inspectFlags) checkRanges() error {
	switch {
	case f.events < 0:
		return fmt.Errorf("--events %d: must be 0 or more", f.events)
	case f.interval < leastInterval:
		return fmt.Errorf("--interval %s: must be at least %s", f.interval, leastInterval)
	}
	return nil
}

func (f *inspectFlags) checkIstiod(c *cobra.Command) error {
	if err := f.istiod.Check(); err != nil {
		return fmt.Errorf("--istiod-address: %w", err)
	}
	for _, name := range []string{"istiod-plaintext", "istiod-token-file", "istiod-root-cert", "istiod-server-name", "istiod-cluster"} {
		if f.istiod.Address == "" && c.Flags().Changed(name) {
			return errors.New("--" + name + ": of no use without --istiod-address")
		}
	}
	return nil
}

// openInspect opens the cluster.
func (p *Program) openInspect(t clusterFlags) (selectingReader, error) {
	open := p.connect
	if open == nil {
		open = connect
	}
	t.UserAgent = strings.ReplaceAll(CommandName(p.Name), " ", "-")
	from, err := open(t)
	if err != nil {
		return nil, err
	}
	selecting, ok := from.(selectingReader)
	if !ok {
		return nil, fmt.Errorf("%T cannot list by selectors", from)
	}
	return selecting, nil
}
