package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes.
const (
	exitFine     = 0
	exitFindings = 1
	exitFailed   = 2
)

// Program is what the process gives to the commands.
type Program struct {
	// Name is argv[0]; as a kubectl plugin it decides how help names the command.
	Name    string
	Version string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	// Colour lets the table be coloured. The caller looks at the terminal.
	Colour bool

	// connect opens a cluster; nil is the real one. patience is how long something may
	// take without a word; 0 is a second. now is the time; nil is the real one.
	connect  func(clusterFlags) (reader, error)
	patience time.Duration
	now      func() time.Time
}

// commands are all commands. Each adds its own flags.
var commands = []func(*Program) *cobra.Command{lintCommand, inspectCommand}

// Asked tells whether a person wants a command, rather than to know what the plugin
// is: the first argument is no flag, flags of a command stand before its name, or the
// program goes by the name of a kubectl plugin. Whether the controller has started it
// the caller has to ask first: its arguments are the operator's.
func Asked(argv0 string, args []string) bool {
	return len(args) > 0 && args[0] != "" && !strings.HasPrefix(args[0], "-") || isKubectlPlugin(argv0) || commandAt(args) >= 0
}

func isKubectlPlugin(argv0 string) bool {
	return strings.HasPrefix(filepath.Base(argv0), "kubectl-")
}

// errFindings is the error of a command that ran well and has something to say by its
// exit code alone.
var errFindings = errors.New("there are findings")

// Run carries out one command and returns the exit code. It returns when ctx ends.
func Run(ctx context.Context, args []string, p Program) int {
	root := p.root()
	root.SetArgs(commandFirst(args))
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return exitFine
	case errors.Is(err, errFindings):
		return exitFindings
	default:
		fmt.Fprintf(p.Err, "%s: %v\n", CommandName(p.Name), err)
		return exitFailed
	}
}

// commandFirst moves a command's name before the flags that stand in front of it, as
// in -n shop lint.
func commandFirst(args []string) []string {
	at := commandAt(args)
	if at <= 0 {
		return args
	}
	return slices.Concat(args[at:at+1], args[:at], args[at+1:])
}

// commandAt is where the name of a command stands behind flags only, -1 if it does not.
func commandAt(args []string) int {
	known := make([]*cobra.Command, len(commands))
	for i, command := range commands {
		known[i] = command(&Program{})
	}
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--":
			return -1
		case slices.ContainsFunc(known, func(c *cobra.Command) bool { return c.Name() == args[i] }):
			return i
		case !strings.HasPrefix(args[i], "-"):
			return -1
		case slices.ContainsFunc(known, func(c *cobra.Command) bool { return takesNext(c.Flags(), args[i]) }):
			i++
		}
	}
	return -1
}

// takesNext tells a flag whose value is the argument behind it.
func takesNext(flags *pflag.FlagSet, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	flag := (*pflag.Flag)(nil)
	if name, long := strings.CutPrefix(arg, "--"); long {
		flag = flags.Lookup(name)
	} else if len(arg) == 2 {
		flag = flags.ShorthandLookup(arg[1:])
	}
	return flag != nil && flag.NoOptDefVal == ""
}

func (p *Program) root() *cobra.Command {
	name := CommandName(p.Name)
	root := &cobra.Command{
		Use:           name,
		Short:         "Look at Rollouts that the Istio plugin of Argo Rollouts routes",
		Long:          "Look at Rollouts that the Istio plugin of Argo Rollouts routes, before and while they run.\nNothing here writes to a cluster.",
		Version:       p.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, command := range commands {
		root.AddCommand(command(p))
	}
	root.AddCommand(versionHint())
	return root
}

// versionHint is for those who look for the version where other programs have it. It is no
// command: it stands in no help.
func versionHint() *cobra.Command {
	return &cobra.Command{Use: "version", Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
		return errors.New(`unknown command "version": --version tells the version`)
	}}
}

// CommandName is how a person calls the program: kubectl finds a binary called
// kubectl-argo_rollouts_istio under "kubectl argo-rollouts-istio".
func CommandName(argv0 string) string {
	base := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	rest, plugin := strings.CutPrefix(base, "kubectl-")
	if !plugin {
		return base
	}
	words := strings.Split(rest, "-")
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "_", "-")
	}
	return "kubectl " + strings.Join(words, " ")
}

// Summaries are the commands with one line each, for the plugin's own help.
func Summaries() string {
	var b strings.Builder
	for _, command := range commands {
		c := command(&Program{})
		fmt.Fprintf(&b, "  %-10s %s\n", c.Name(), c.Short)
	}
	return b.String()
}
