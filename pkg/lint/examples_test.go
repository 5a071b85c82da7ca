package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// TestTheExamplesAreClean reads each set of files that is applied together.
func TestTheExamplesAreClean(t *testing.T) {
	for name, pattern := range map[string][]string{
		"header-route":         {"header-route/*.yaml"},
		"host-level":           {"host-level/*.yaml"},
		"subset-level":         {"subset-level/*.yaml"},
		"install":              {"install/*.yaml"},
		"after the migration":  {"migrate-from-native/after.yaml", "migrate-from-native/routing.yaml"},
		"all that are offered": {"header-route/*.yaml", "host-level/*.yaml", "subset-level/*.yaml", "migrate-from-native/after.yaml", "migrate-from-native/routing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			report := lint.Run(read(t, pattern), lint.Options{Complete: func(string, string) bool { return true }})
			for _, f := range report.Findings {
				t.Errorf("%s:%d: %s %s", f.File, f.Line, f.Code, f.Message)
			}
			if name != "install" && (report.Rollouts == 0 || len(report.Notes) > 0) {
				t.Errorf("%d Rollouts were judged, and noted: %q", report.Rollouts, report.Notes)
			}
		})
	}
}

// read takes the files of the repository's examples.
func read(t *testing.T, patterns []string) lint.Input {
	t.Helper()
	var in lint.Input
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join("../../examples", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(paths))
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in.Read(path, data)
		}
	}
	return in
}
