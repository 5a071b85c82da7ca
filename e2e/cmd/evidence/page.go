package main

import (
	"bytes"
	"fmt"
)

// fill puts each table between its markers, <!-- begin NAME --> and
// <!-- end NAME -->, and leaves the rest of the page as it is.
func fill(page []byte, tables map[string]string) ([]byte, error) {
	for _, name := range tableNames {
		begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->", name)
		from := bytes.Index(page, begin)
		to := bytes.Index(page, end)
		if from < 0 || to < from {
			return nil, fmt.Errorf("no lines %q and %q in that order: put them where the table belongs", bytes.TrimSpace(begin), end)
		}
		page = bytes.Join([][]byte{page[:from+len(begin)], []byte(tables[name]), page[to:]}, nil)
	}
	return page, nil
}
