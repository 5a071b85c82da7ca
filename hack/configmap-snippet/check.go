package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// What the flags give goes into an address and into YAML without quotes, so each form leaves out what would end either
// of them: white space, and the signs that begin a comment, a query or a fragment.
var (
	// tagForm is that of the tags that make a release, and of a snapshot's version. The v is part of the address.
	tagForm = regexp.MustCompile(`^v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	// fileForm is that of a file's name, without a folder.
	fileForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)
	// nameForm is what the controller takes as a plugin's name. It makes a folder and a file of it, so no dot leads.
	nameForm = regexp.MustCompile(`^[0-9A-Za-z-]+/[0-9A-Za-z_-][0-9A-Za-z._-]*$`)
	// addressForm has the characters of RFC 3986 but for ? and #.
	addressForm = regexp.MustCompile(`^[0-9A-Za-z._~:/@!$&'()*+,;=%\[\]-]+$`)
)

// check tells what of the flags the controller could not use, and what to give instead; all faults at once.
func (s snippet) check() error {
	var errs []error
	need := func(ok bool, flag, value, remedy string) {
		if !ok {
			errs = append(errs, fmt.Errorf("--%s %q: give %s", flag, value, remedy))
		}
	}
	need(tagForm.MatchString(s.Version), "version", s.Version, "the release's tag with its v, as v1.2.3 or v1.2.3-rc.1")
	need(fileForm.MatchString(s.Binary), "binary", s.Binary, "the binary's name in the checksums file, of letters, digits, dots, dashes and underscores")
	need(nameForm.MatchString(s.Name), "name", s.Name, "two words with one slash between them, as argoproj-labs/istio")
	need(usable(s.Address), "address", s.Address, "the folder of the releases as https://host/path, http://host/path or file:///path, without white space, ? and #")
	return errors.Join(errs...)
}

// usable tells whether the controller can fetch from below an address. A file's has three slashes: what follows two is a
// path from wherever the controller was started.
func usable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !addressForm.MatchString(address) {
		return false
	}
	switch u.Scheme {
	case "http", "https":
		return u.Hostname() != ""
	case "file":
		return strings.HasPrefix(address, "file:///") && strings.Trim(u.Path, "/") != ""
	default:
		return false
	}
}
