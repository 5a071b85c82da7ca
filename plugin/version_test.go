package main

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestTheVersionTellsWhereTheBinaryComesFrom(t *testing.T) {
	const hash = "9414e506ed7943b3752e87c38c0d934309a61b72"
	recorded := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	git := []debug.BuildSetting{{Key: "vcs.revision", Value: hash}, {Key: "vcs.time", Value: "2026-11-30T11:30:33Z"}, {Key: "vcs.modified", Value: "false"}}
	changed := append(git[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for sentence, tc := range map[string]struct {
		stamp origin
		info  *debug.BuildInfo
		want  string
	}{
		"a release has all of it from the stamp, whatever the Go tool says": {
			origin{version: "v1.2.3", commit: hash, date: "2026-11-30T11:30:33Z"}, recorded("v0.0.0-1", changed...),
			"v1.2.3 (commit " + hash + ", of 2026-11-30T11:30:33Z)"},
		"a release whose binary the Go tool says nothing about": {origin{version: "v1.2.3", commit: hash, date: "2026-11-30T11:30:33Z"}, nil, "v1.2.3 (commit " + hash + ", of 2026-11-30T11:30:33Z)"},
		"a build with no more than a version": {
			origin{version: "v9.9.9"}, recorded("v0.0.0-20261130113033-9414e506ed79", git...),
			"v9.9.9 (commit " + hash + ", of 2026-11-30T11:30:33Z, no release: some of the release's stamps are missing)"},
		"a build with no more than a version, of changed files": {
			origin{version: "9414e50-dirty"}, recorded("v1.2.3+dirty", changed...),
			"9414e50-dirty (commit " + hash + ", of 2026-11-30T11:30:33Z, with changes, no release: some of the release's stamps are missing)"},
		"a build with no more than a version, without a clone":  {origin{version: "v9.9.9"}, recorded("(devel)"), "v9.9.9 (no release: some of the release's stamps are missing)"},
		"a build with no more than a version, without a record": {origin{version: "v9.9.9"}, nil, "v9.9.9 (no release: some of the release's stamps are missing)"},
		"a build that lacks the commit's stamp": {
			origin{version: "v1.2.3", date: "2026-11-30T11:30:33Z"}, nil, "v1.2.3 (of 2026-11-30T11:30:33Z, no release: some of the release's stamps are missing)"},
		"a build that lacks the date's stamp": {
			origin{version: "v1.2.3", commit: hash}, recorded("(devel)"), "v1.2.3 (commit " + hash + ", no release: some of the release's stamps are missing)"},
		"a build that lacks the version's stamp": {
			origin{commit: hash, date: "2026-11-30T11:30:33Z"}, recorded("(devel)"), "devel (commit " + hash + ", of 2026-11-30T11:30:33Z, no release: some of the release's stamps are missing)"},
		"a stamp of another commit than the Go tool has recorded": {
			origin{version: "v1.2.3", commit: strings.Repeat("0", 40)}, recorded("(devel)", git...),
			"v1.2.3 (commit " + hash + ", of 2026-11-30T11:30:33Z, no release: some of the release's stamps are missing)"},
		"a build in a clone": {
			origin{}, recorded("v0.0.0-20261130113033-9414e506ed79", git...),
			"v0.0.0-20261130113033-9414e506ed79 (commit " + hash + ", of 2026-11-30T11:30:33Z, no release: as the Go tool recorded it)"},
		"a build in a clone with changed files": {
			origin{}, recorded("v1.2.3+dirty", changed...),
			"v1.2.3+dirty (commit " + hash + ", of 2026-11-30T11:30:33Z, with changes, no release: as the Go tool recorded it)"},
		"go install of a version":     {origin{}, recorded("v1.2.3"), "v1.2.3 (no release: as the Go tool recorded it)"},
		"a build without a clone":     {origin{}, recorded(""), "unknown (no release: as the Go tool recorded it)"},
		"a build without its history": {origin{}, recorded("(devel)"), "devel (no release: as the Go tool recorded it)"},
		"nothing is known":            {origin{}, nil, "unknown (no release: as the Go tool recorded it)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := originOf(tc.stamp, tc.info).String(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestTheVersionLineIsTheStampThenGoThenThePlatform(t *testing.T) {
	t.Cleanup(func() { version, commit, date = "", "", "" })
	version, commit, date = "v1.2.3", "9414e50", "2026-11-30T11:30:33Z"
	want := name + " v1.2.3 (commit 9414e50, of 2026-11-30T11:30:33Z) " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if got := versionLine(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := buildVersion(); got != "v1.2.3" {
		t.Errorf("short: %q", got)
	}
}

// A release that lacks one would say that it is none.
func TestTheReleaseSetsEveryStamp(t *testing.T) {
	configuration, err := os.ReadFile(filepath.Join("..", ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, stamp := range []string{"version", "commit", "date"} {
		if !strings.Contains(string(configuration), " -X main."+stamp+"={{ .") && !strings.Contains(string(configuration), " -X main."+stamp+"=v{{ .") {
			t.Errorf(".goreleaser.yaml does not set main.%s", stamp)
		}
	}
}
