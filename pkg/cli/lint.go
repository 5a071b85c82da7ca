package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// lintFlags are the choices of one lint.
type lintFlags struct {
	target    clusterFlags
	files     []string
	output    string
	threshold string
	ignore    []string
	explain   string
	complete  bool
	empty     bool

	plugin, domain, allowed string
	// prometheus and prometheuses are the operator's flags about the health gate.
	prometheus, prometheuses string
}

const lintLong = `Find what will go wrong with Rollouts that the plugin routes, in files or in a cluster.

With -f it reads files, folders or stdin and needs no cluster: Rollouts with their VirtualServices, DestinationRules,
Services and what else belongs to them, also as rendered by Helm or Kustomize. Without -f it reads one namespace of a
cluster. With the name of a Rollout it judges only that one; of files with several of one name, NAMESPACE/ROLLOUT
chooses.

Exit codes: 0 fine, 1 findings at or above --failure-threshold, 2 could not run, or no Rollout was found.`

const lintExample = `  # all files of a folder, as in CI
  %[1]s lint -f deploy/

  # what Helm or Kustomize renders
  helm template web charts/web -n shop | %[1]s lint -n shop -f -

  # one Rollout of a cluster
  %[1]s lint -n shop web

  # what a code means
  %[1]s lint --explain ARI0204`

func lintCommand(p *Program) *cobra.Command {
	f := &lintFlags{}
	c := &cobra.Command{
		Use:     "lint [ROLLOUT] [-f FILE|DIR|-]",
		Short:   "Find what will go wrong with a Rollout, in files or in a cluster",
		Long:    lintLong,
		Example: fmt.Sprintf(lintExample, CommandName(p.Name)),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("explain") {
				return p.explain(f.explain, f.output)
			}
			return f.hinted(p.lint(c.Context(), f, args), args)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringArrayVarP(&f.files, "filename", "f", nil, "file, folder (with all below it) or - for stdin; may be given several times")
	f.target.bind(flags)
	flags.StringVarP(&f.output, "output", "o", defaults, "table, json or yaml")
	flags.StringVar(&f.threshold, "failure-threshold", lint.Error.String(), "the least severity that makes the exit code 1: error, warning or info")
	flags.StringSliceVar(&f.ignore, "ignore", nil, "codes to suppress, with commas between them; may be given several times")
	flags.StringVar(&f.explain, "explain", "", "explain this code, and do nothing else")
	flags.BoolVar(&f.complete, "complete", false, "the files hold every object, so that one that is named and not there does not exist")
	flags.BoolVar(&f.empty, "allow-empty", false, "that no Rollout is found is fine")
	flags.StringVar(&f.plugin, "plugin-name", config.DefaultPluginName, "the name under which the plugin is registered")
	flags.StringVar(&f.allowed, "allow-cross-namespace", "off", "what the plugin's own flag says: off, namespaces with commas between them, or *")
	flags.StringVar(&f.prometheus, "prometheus-address", "", "what the plugin's own flag says; without this and the next one no healthGate's server is judged")
	flags.StringVar(&f.prometheuses, "allow-prometheus-addresses", "", "what the plugin's own flag says: URLs with commas between them, or *")
	flags.StringVar(&f.domain, "cluster-domain", "cluster.local", "the cluster's DNS domain")
	return c
}

func (p *Program) lint(ctx context.Context, f *lintFlags, args []string) error {
	options, threshold, form, err := f.parse(args)
	if err != nil {
		return err
	}
	report, err := p.judge(ctx, f, options)
	if err != nil {
		return err
	}
	if options.Only != "" && report.Rollouts == 0 {
		return fmt.Errorf("no Rollout %q that Istio routes was found", args[0])
	}
	if report.Findings == nil {
		report.Findings = []lint.Finding{}
	}
	if err := form.write(p.Out, report, func(out io.Writer) { p.lintTable(out, report) }); err != nil {
		return err
	}
	switch {
	case report.Worst() >= threshold:
		return errFindings
	case report.Rollouts == 0 && !f.empty:
		return errors.New("no Rollout that Istio routes was found, so that nothing was judged; --allow-empty accepts that")
	}
	return nil
}

// hinted adds what was meant, if a path stands where a Rollout's name should.
func (f *lintFlags) hinted(err error, args []string) error {
	if err == nil || errors.Is(err, errFindings) || len(args) == 0 || len(f.files) > 0 {
		return err
	}
	if _, missing := os.Stat(args[0]); missing != nil {
		return err
	}
	return fmt.Errorf("%w; there is a file or folder of that name: did you mean -f %s?", err, args[0])
}

// parse refuses wrong flags before anything is read.
func (f *lintFlags) parse(args []string) (lint.Options, lint.Severity, format, error) {
	options := lint.Options{PluginName: f.plugin, ClusterDomain: f.domain}
	threshold, err := lint.ParseSeverity(f.threshold)
	if err != nil {
		return options, 0, "", fmt.Errorf("--failure-threshold: %w", err)
	}
	form, err := parseFormat(f.output)
	if err != nil {
		return options, 0, "", err
	}
	if options.CrossNamespace, err = config.ParseCrossNamespace(f.allowed); err != nil {
		return options, 0, "", err
	}
	for _, code := range f.ignore {
		check, known := lint.Lookup(strings.TrimSpace(code))
		if !known {
			return options, 0, "", fmt.Errorf("--ignore %s: there is no such code", code)
		}
		options.Ignore = append(options.Ignore, check.Code)
	}
	if f.complete && len(f.files) == 0 {
		return options, 0, "", errors.New("--complete is about files: give them with -f")
	}
	if options.Prometheus, err = f.parsePrometheus(); err != nil {
		return options, 0, "", err
	}
	if f.target.Namespace != "" && len(validation.IsDNS1123Label(f.target.Namespace)) > 0 {
		return options, 0, "", fmt.Errorf("-n %q is no namespace: it takes lower-case letters, digits and -", f.target.Namespace)
	}
	if len(args) > 0 {
		if options.OnlyIn, options.Only, err = f.parseName(args[0]); err != nil {
			return options, 0, "", err
		}
	}
	return options, threshold, form, nil
}

// parseName reads ROLLOUT, or NAMESPACE/ROLLOUT for files, which may be of many namespaces.
func (f *lintFlags) parseName(arg string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(arg, "/")
	if !found {
		namespace, name = "", arg
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 || found && len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", "", fmt.Errorf("%q is no name of a Rollout: that takes lower-case letters, digits, dots and -", arg)
	}
	if found && len(f.files) == 0 {
		return "", "", fmt.Errorf("%q is no name of a Rollout: NAMESPACE/ROLLOUT is for files; of a cluster, -n chooses the namespace", arg)
	}
	return namespace, name, nil
}

// parsePrometheus is nil if neither flag is given: what the operator allows is not known.
func (f *lintFlags) parsePrometheus() (*config.PrometheusAddresses, error) {
	if f.prometheus == "" && f.prometheuses == "" {
		return nil, nil
	}
	allowed := &config.PrometheusAddresses{}
	if err := allowed.Allow(f.prometheuses); err != nil {
		return nil, fmt.Errorf("--allow-prometheus-addresses: %w", err)
	}
	if f.prometheus != "" {
		address, err := config.ParsePrometheusAddress(f.prometheus)
		if err != nil {
			return nil, fmt.Errorf("--prometheus-address: the URL %w", err)
		}
		allowed.Default = address
	}
	return allowed, nil
}

func (p *Program) judge(ctx context.Context, f *lintFlags, options lint.Options) (lint.Report, error) {
	if len(f.files) == 0 {
		return p.judgeCluster(ctx, f.target, options)
	}
	in := lint.Input{Namespace: f.target.Namespace, Command: CommandName(p.Name)}
	err := p.during("reading "+strings.Join(f.files, ", "), func() error { return p.readFiles(ctx, &in, f.files, f.empty) })
	if err != nil {
		return lint.Report{}, err
	}
	if f.complete {
		options.Complete = func(string, string) bool { return true }
	}
	return p.run(in, options), nil
}

// run tells what takes time with thousands of Rollouts.
func (p *Program) run(in lint.Input, options lint.Options) (report lint.Report) {
	_ = p.during("judging", func() error { report = lint.Run(in, options); return nil })
	return report
}

// explained is what the registry says of a code, for programs.
type explained struct {
	Code        string        `json:"code"`
	Severity    lint.Severity `json:"severity"`
	Title       string        `json:"title"`
	Consequence string        `json:"consequence"`
	Remedy      string        `json:"remedy"`
	Not         string        `json:"notWhen,omitempty"`
	Elsewhere   string        `json:"elsewhere,omitempty"`
}

// explain prints what the registry says of a code.
func (p *Program) explain(code, output string) error {
	form, err := parseFormat(output)
	if err != nil {
		return err
	}
	c, known := lint.Lookup(strings.TrimSpace(code))
	if !known {
		return fmt.Errorf("--explain %q: there is no such code; docs/lint.md lists them", code)
	}
	value := explained{c.Code, c.Severity, c.Title, c.Happens, c.Instead, c.Not, c.Elsewhere}
	return form.write(p.Out, value, func(out io.Writer) { fmt.Fprint(out, p.explanation(c)) })
}

func (p *Program) explanation(c *lint.Check) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n\n", c.Code, p.paint(c.Severity.String(), colours[c.Severity]), c.Title)
	for _, part := range []struct{ head, text string }{
		{"What will happen", c.Happens}, {"What to write instead", c.Instead}, {"When it does not apply", c.Not}, {"Elsewhere", c.Elsewhere},
	} {
		if part.text != "" {
			fmt.Fprintf(&b, "%s\n  %s\n\n", part.head, wrap(part.text, "  ", width))
		}
	}
	fmt.Fprintf(&b, "To suppress it\n  --ignore %s", c.Code)
	if c.Annotated() {
		fmt.Fprintf(&b, ", or on the object or its Rollout the annotation\n  %s: %s", lint.IgnoreAnnotation, c.Code)
	}
	b.WriteString("\n")
	return b.String()
}
