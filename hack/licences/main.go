package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// page is where the list is, from the root of the repository.
const page = "docs/licences.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check := flag.Bool("check", false, "compare with "+page+" and write nothing")
	into := flag.String("texts", "", "write the texts in full into this file, and nothing else")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: licences [--check] ROOT-OF-THE-REPOSITORY")
		os.Exit(2)
	}
	if err := run(ctx, flag.Arg(0), *check, *into); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// run writes the page, or compares with it, or writes the texts. A licence that is not allowed is an error in
// either case, and then nothing is written.
func run(ctx context.Context, root string, check bool, into string) error {
	found, err := collect(ctx, root)
	if err != nil {
		return err
	}
	if err := judge(found); err != nil {
		return err
	}
	if into != "" {
		return os.WriteFile(into, bundle(found), 0o644)
	}
	want, path := render(found), filepath.Join(root, page)
	if !check {
		return os.WriteFile(path, want, 0o644)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return compare(got, want)
}

// compare names the lines in which the page differs.
func compare(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	lines := []error{fmt.Errorf("%s is not what the modules have: run `make licences`", page)}
	missing := func(from, in []byte, sign string) {
		for line := range strings.Lines(string(from)) {
			if !bytes.Contains(in, []byte(line)) {
				lines = append(lines, fmt.Errorf("  %s %s", sign, strings.TrimSpace(line)))
			}
		}
	}
	missing(got, want, "-")
	missing(want, got, "+")
	return errors.Join(lines...)
}
