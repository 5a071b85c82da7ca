package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// results keeps each table as soon as it is complete: what comes after it takes long,
// and may fail, or bring the whole process down. It is not for use by several at once.
type results struct {
	out     io.Writer
	page    string   // path; "" for none
	below   string   // what stands below each table
	missing []string // tables that are still to come
	errs    []error
}

// add writes a table into the page and prints it. What goes wrong with the page is told
// by close, and stops nothing: the table is printed all the same. It is printed last,
// since a reader that has gone ends the process.
func (r *results) add(table, text string) {
	text += r.below
	if r.page != "" {
		if err := put(r.page, map[string]string{table: text}, []string{table}); err != nil {
			r.errs = append(r.errs, fmt.Errorf("write table %s into the page, it is printed only: %w", table, err))
		}
	}
	if _, err := fmt.Fprintf(r.out, "\n%s\n\n%s", table, text); err != nil {
		r.errs = append(r.errs, fmt.Errorf("print table %s: %w", table, err))
	}
	r.missing = slices.DeleteFunc(r.missing, func(name string) bool { return name == table })
}

// close tells of all that failed, and what was not measured for that.
func (r *results) close(played error) error {
	err := errors.Join(append([]error{played}, r.errs...)...)
	if len(r.missing) == 0 {
		return err
	}
	kept := "."
	if r.page != "" {
		kept = "; in " + r.page + " they are as they were."
	}
	return errors.Join(err, fmt.Errorf("not made: %s%s", strings.Join(r.missing, ", "), kept))
}

// put writes the tables into a page, as it is now.
func put(path string, tables map[string]string, names []string) error {
	page, err := readPage(path, names)
	if err != nil {
		return err
	}
	if page, err = fill(page, tables, names); err != nil {
		return err
	}
	return writePage(path, page)
}
