package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/istio"
)

const usage = `Says which VirtualServices and DestinationRules Istio's validation refuses.

Usage:
  validate [flags] [FILE|FOLDER ...]

Each line of a FILE is one object as JSON, or {"before": object, "after": object},
of which the second has to pass only if the first does. A FOLDER means the files
*.jsonl in it. Without arguments, or for -, standard input is read.

Prints "Kind namespace/name: error" for each object that is refused, and at the
end how many were looked at.

Exit codes: 0 all accepted, 1 some refused, 2 wrong usage, unreadable, or no object at all.

Flags:
`

// Exit codes.
const (
	exitRefused = 1
	exitUsage   = 2
)

// extension is that of the files which a folder stands for.
const extension = ".jsonl"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := pflag.NewFlagSet("validate", pflag.ContinueOnError)
	flags.Usage = func() {} // printed below when asked, and only then
	warnings := flags.Bool("warnings", false, "print Istio's warnings, too; they do not change the exit code")
	help := flags.BoolP("help", "h", false, "print this text")
	if err := flags.Parse(args); err != nil {
		fmt.Fprintf(stderr, "validate: %v; see validate --help\n", err)
		return exitUsage
	}
	if *help {
		fmt.Fprint(stdout, usage, flags.FlagUsages())
		return 0
	}
	report, err := check(flags.Args(), stdin)
	printReport(stdout, report, *warnings)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "validate: %v\n", err)
		return exitUsage
	case report.Refused > 0:
		return exitRefused
	}
	return 0
}

// check reads all that the arguments name. No object at all is an error: a
// check of nothing is not a pass.
func check(args []string, stdin io.Reader) (istio.Report, error) {
	var report istio.Report
	if len(args) == 0 {
		args = []string{"-"}
	}
	for _, arg := range args {
		files, err := expand(arg)
		if err != nil {
			return report, err
		}
		for _, file := range files {
			if err := checkFile(&report, file, stdin); err != nil {
				return report, err
			}
		}
	}
	if report.Objects == 0 {
		return report, errors.New("no object in what was named, so nothing was checked")
	}
	return report, nil
}

// expand returns the files that an argument stands for.
func expand(arg string) ([]string, error) {
	if arg == "-" {
		return []string{arg}, nil
	}
	info, err := os.Stat(arg)
	if err != nil || !info.IsDir() {
		return []string{arg}, err
	}
	entries, err := os.ReadDir(arg)
	var files []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == extension {
			files = append(files, filepath.Join(arg, entry.Name()))
		}
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no file *%s in %s", extension, arg)
	}
	return files, err
}

func checkFile(report *istio.Report, name string, stdin io.Reader) error {
	if name == "-" {
		if err := report.Check(stdin); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := report.Check(file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func printReport(out io.Writer, report istio.Report, warnings bool) {
	for _, finding := range report.Findings {
		if !finding.Warning || warnings {
			fmt.Fprintln(out, finding)
		}
	}
	fmt.Fprintf(out, "%d objects: %d refused by Istio", report.Objects, report.Refused)
	if report.Excused > 0 {
		fmt.Fprintf(out, "; %d more that it refused before the write, too", report.Excused)
	}
	fmt.Fprintln(out)
}
