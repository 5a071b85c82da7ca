package cli

import (
	"bytes"
	"context"
	"errors"
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
// what stands in it is for the linter to judge. A folder without files is one, too,
// unless that is fine: it is noted then.
func (p *Program) readFiles(ctx context.Context, in *lint.Input, names []string, empty bool) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := p.readName(in, name)
		if errors.Is(err, errNoFiles) && empty {
			in.Note(err.Error())
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errNoFiles = fmt.Errorf("no file ends in %s", strings.Join(endings, ", "))

func (p *Program) readName(in *lint.Input, name string) error {
	if name == "-" {
		return p.readStdin(in)
	}
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("-f %s: %w", name, err)
	}
	if !info.IsDir() {
		return readFile(in, name, name)
	}
	if err := readFolder(in, name); err != nil {
		return fmt.Errorf("-f %s: %w", name, err)
	}
	return nil
}

// readStdin refuses an empty one: what should have written it has failed.
func (p *Program) readStdin(in *lint.Input) error {
	data, err := readAll("stdin", p.In)
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		err = errors.New("-f -: stdin is empty")
	}
	if err != nil {
		return err
	}
	in.Read("stdin", data)
	return nil
}

// readFolder reads all files below a folder, also one that is itself a link.
func readFolder(in *lint.Input, name string) error {
	root, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != root && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		shown := filepath.Join(name, below)
		wanted, err := isFile(in, path, shown, entry)
		if !wanted || err != nil {
			return err
		}
		found++
		return readFile(in, path, shown)
	})
	if err == nil && found == 0 {
		err = errNoFiles
	}
	return err
}

// isFile tells whether an entry is a file to read. Links to files are followed; those
// to folders, which may lead round in circles, are noted.
func isFile(in *lint.Input, path, shown string, entry fs.DirEntry) (bool, error) {
	named := slices.Contains(endings, strings.ToLower(filepath.Ext(path)))
	if entry.Type()&fs.ModeSymlink == 0 {
		return named && entry.Type().IsRegular(), nil
	}
	if strings.HasPrefix(entry.Name(), ".") && !named {
		return false, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil && named:
		return false, err
	case err != nil:
		return false, nil
	case info.IsDir():
		in.Note(filepath.ToSlash(shown) + " is a link to a folder, which was not read: name it with -f")
		return false, nil
	}
	return named && info.Mode().IsRegular(), nil
}

// readFile reads the file at a path under the name that the person knows.
func readFile(in *lint.Input, path, shown string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := readAll(shown, file)
	if err != nil {
		return err
	}
	in.Read(filepath.ToSlash(shown), data)
	return nil
}

// readAll reads one byte more than the linter takes, so that it can say so.
func readAll(name string, from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, lint.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}
