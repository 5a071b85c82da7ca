package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// readPage reads a page and checks that it has a place for each table.
func readPage(path string, names []string) ([]byte, error) {
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if _, err := fill(page, map[string]string{}, names); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return page, nil
}

// fill puts tables between their markers, <!-- begin NAME --> and <!-- end NAME -->,
// and leaves the rest of the page as it is.
func fill(page []byte, tables map[string]string, names []string) ([]byte, error) {
	var errs []error
	for _, name := range names {
		begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->", name)
		from, to := bytes.Index(page, begin), bytes.Index(page, end)
		if from < 0 || to < from {
			errs = append(errs, fmt.Errorf("no lines %q and %q in that order: put them where the table belongs, or use --out=-", bytes.TrimSpace(begin), end))
			continue
		}
		page = bytes.Join([][]byte{page[:from+len(begin)], []byte(tables[name]), page[to:]}, nil)
	}
	return page, errors.Join(errs...)
}

// writePage replaces a file by way of another one beside it: who reads it meanwhile
// reads either the old or the new page.
func writePage(path string, page []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(page)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
