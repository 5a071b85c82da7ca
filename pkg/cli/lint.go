package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

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

	plugin, domain, allowed string
}

const lintLong = `Find what will go wrong with Rollouts that the plugin routes, in files or in a cluster.

With -f it reads files, folders or stdin and needs no cluster: Rollouts with their VirtualServices, DestinationRules,
Services and what else belongs to them, also as rendered by Helm or Kustomize. Without -f it reads one namespace of a
cluster. With the name of a Rollout it judges only that one.

Exit codes: 0 fine, 1 findings at or above --failure-threshold, 2 could not run.`

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
			return p.lint(c.Context(), f, args)
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
	flags.StringVar(&f.plugin, "plugin-name", config.DefaultPluginName, "the name under which the plugin is registered")
	flags.StringVar(&f.allowed, "allow-cross-namespace", "off", "what the plugin's own flag says: off, namespaces with commas between them, or *")
	flags.StringVar(&f.domain, "cluster-domain", "cluster.local", "the cluster's DNS domain")
	return c
}

func (p *Program) lint(ctx context.Context, f *lintFlags, args []string) error {
	if f.explain != "" {
		return p.explain(f.explain)
	}
	options, threshold, form, err := f.parse(args)
	if err != nil {
		return err
	}
	report, err := p.judge(ctx, f, options)
	if err != nil {
		return err
	}
	if options.Only != "" && report.Rollouts == 0 {
		return fmt.Errorf("no Rollout %q that Istio routes was found", options.Only)
	}
	if report.Findings == nil {
		report.Findings = []lint.Finding{}
	}
	if err := form.write(p.Out, report, func(out io.Writer) { p.lintTable(out, report) }); err != nil {
		return err
	}
	if report.Worst() >= threshold {
		return errFindings
	}
	return nil
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
	if len(args) > 0 {
		options.Only = args[0]
	}
	return options, threshold, form, nil
}

func (p *Program) judge(ctx context.Context, f *lintFlags, options lint.Options) (lint.Report, error) {
	if len(f.files) == 0 {
		return p.judgeCluster(ctx, f.target, options)
	}
	in := lint.Input{Namespace: f.target.Namespace}
	err := p.during("reading "+strings.Join(f.files, ", "), func() error { return p.readFiles(ctx, &in, f.files) })
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

// explain prints what the registry says of a code.
func (p *Program) explain(code string) error {
	check, known := lint.Lookup(code)
	if !known {
		return fmt.Errorf("--explain %s: there is no such code; docs/lint.md lists them", code)
	}
	_, err := io.WriteString(p.Out, p.explanation(check))
	return err
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
	fmt.Fprintf(&b, "To suppress it\n  --ignore %s, or on the object or its Rollout the annotation\n  %s: %s\n", c.Code, lint.IgnoreAnnotation, c.Code)
	return b.String()
}
