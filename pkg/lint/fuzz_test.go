package lint_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// FuzzLint: any bytes give a report, the same twice, whose findings are of known
// codes and stand in the file.
func FuzzLint(f *testing.F) {
	f.Add([]byte(bySubsets))
	f.Add([]byte(list(faultyBase())))
	f.Add([]byte(laughs(5)))
	for _, row := range grid {
		text := row.finds.base + bySubsets
		for i := 0; i+1 < len(row.finds.replace); i += 2 {
			text = strings.Replace(text, row.finds.replace[i], row.finds.replace[i+1], 1)
		}
		f.Add([]byte(text + "---\n" + row.finds.more))
	}
	for _, seed := range []string{"", "---", "a: &a [*a]", "<<: *a", "? []\n: {}", "\xef\xbb\xbf{}", "a: !!binary x", "- <<: [*a, {b: c}]", "{\"a\":\r\n1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		report, again := lintText(string(data)), lintText(string(data))
		if len(report.Findings) != len(again.Findings) {
			t.Fatalf("%d findings, then %d", len(report.Findings), len(again.Findings))
		}
		lines := strings.Count(string(data), "\n") + 1
		for i, finding := range report.Findings {
			if finding != again.Findings[i] {
				t.Errorf("%+v, then %+v", finding, again.Findings[i])
			}
			if _, known := lint.Lookup(finding.Code); !known {
				t.Errorf("no such code: %+v", finding)
			}
			if finding.Line < 0 || finding.Line > lines+1 || finding.File == "" || finding.Message == "" || !utf8.ValidString(finding.Message) {
				t.Errorf("%d lines, and found %+v", lines, finding)
			}
		}
	})
}
