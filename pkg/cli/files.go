package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// endings are those of the files that are read in a folder.
var endings = []string{".yaml", ".yml", ".json"}

// readFiles takes in what -f names. An error is about a file that cannot be opened;
// what stands in it is for the linter to judge.
func (p *Program) readFiles(ctx context.Context, in *lint.Input, names []string) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.readName(in, name); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) readName(in *lint.Input, name string) error {
	if name == "-" {
		return readAll(in, "stdin", p.In)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("-f %s: %w", name, err)
	}
	if !info.IsDir() {
		return readFile(in, name)
	}
	found := 0
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular() || !slices.Contains(endings, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		found++
		return readFile(in, path)
	})
	if err == nil && found == 0 {
		err = fmt.Errorf("no file ends in %s", strings.Join(endings, ", "))
	}
	if err != nil {
		return fmt.Errorf("-f %s: %w", name, err)
	}
	return nil
}

func readFile(in *lint.Input, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return readAll(in, filepath.ToSlash(path), file)
}

// readAll reads one byte more than the linter takes, so that it can say so.
func readAll(in *lint.Input, name string, from io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(from, lint.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	in.Read(name, data)
	return nil
}
