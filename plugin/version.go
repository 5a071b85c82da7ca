package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the release build with -X, all three (.goreleaser.yaml).
var (
	version = "" // the tag, with its v
	commit  = "" // all of its 40 hex digits
	date    = "" // of the commit, in RFC 3339: that of the build would make each build another file
)

// origin is what the binary was made from. An empty field is not known.
type origin struct {
	version, commit, date string
	// changed is whether files differed from the commit.
	changed bool
	// doubt is why it is no release; empty for one.
	doubt string
}

// Why a binary is no release.
const (
	unstamped   = "no release: as the Go tool recorded it"
	halfStamped = "no release: some of the release's stamps are missing"
)

// originOf takes the release's stamps where all of them are there: whoever sets a
// version alone, as make build does, makes no release. Else it is what the Go tool has
// recorded, of which much may be missing, and the stamps fill in.
func originOf(stamp origin, info *debug.BuildInfo) origin {
	if stamp.version != "" && stamp.commit != "" && stamp.date != "" {
		return stamp
	}
	doubt := halfStamped
	if stamp == (origin{}) {
		doubt = unstamped
	}
	recorded := recordedOrigin(info)
	return origin{
		version: cmp.Or(stamp.version, recorded.version), // as the build was told to call it
		commit:  cmp.Or(recorded.commit, stamp.commit),   // a stamp can be of any
		date:    cmp.Or(recorded.date, stamp.date),
		changed: recorded.changed,
		doubt:   doubt,
	}
}

// recordedOrigin is what the Go tool writes into a binary; info may be nil.
func recordedOrigin(info *debug.BuildInfo) origin {
	if info == nil {
		return origin{}
	}
	// It writes (devel) where it has no version.
	recorded := origin{version: strings.Trim(info.Main.Version, "()")}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			recorded.commit = setting.Value
		case "vcs.time":
			recorded.date = setting.Value
		case "vcs.modified":
			recorded.changed = setting.Value == "true"
		}
	}
	return recorded
}

// String is the version with what is known about it in brackets.
func (o origin) String() string {
	var about []string
	if o.commit != "" {
		about = append(about, "commit "+o.commit)
	}
	if o.date != "" {
		about = append(about, "of "+o.date)
	}
	if o.changed {
		about = append(about, "with changes")
	}
	if o.doubt != "" {
		about = append(about, o.doubt)
	}
	text := cmp.Or(o.version, "unknown")
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text
}

// ownOrigin is that of this binary.
func ownOrigin() origin {
	info, _ := debug.ReadBuildInfo() // nil when there is none
	return originOf(origin{version: version, commit: commit, date: date}, info)
}

// buildVersion is short, for the user agent.
func buildVersion() string { return cmp.Or(ownOrigin().version, "unknown") }

// versionLine tells where the binary comes from, by which Go, and for what platform.
func versionLine() string {
	return fmt.Sprintf("%s %s %s %s/%s", name, ownOrigin(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
