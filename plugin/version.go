package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the release build with -X.
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
	// guessed is whether it is the Go tool's record and not the release's stamp.
	guessed bool
}

// originOf takes the release's stamp where there is one. Else, as after go build
// and go install, it is what the Go tool has recorded, of which much may be missing.
func originOf(stamp origin, info *debug.BuildInfo) origin {
	if stamp.version != "" || info == nil {
		return stamp
	}
	// It writes (devel) where it has no version.
	recorded := origin{version: strings.Trim(info.Main.Version, "()"), guessed: true}
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
	if o.guessed {
		about = append(about, "no release: as the Go tool recorded it")
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
