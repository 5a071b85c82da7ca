package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apache is the repository's own licence.
func apache(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestClassify(t *testing.T) {
	const isc = "Copyright (c) 2020 Somebody\n\nPermission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.\n\nTHE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.\n"
	for what, tc := range map[string]struct {
		text string
		want []string
	}{
		"the text of one licence is named":               {string(apache(t)), []string{"Apache-2.0"}},
		"of two texts in one file both are named":        {string(apache(t)) + isc, []string{"Apache-2.0", "ISC"}},
		"a text that is no licence has none":             {strings.Repeat("All rights are reserved by the authors. ", 50), nil},
		"a licence in a sea of other words has no say":   {isc + strings.Repeat("Every other use has to be paid for in advance. ", 200), nil},
		"an empty file has none":                         {"", nil},
		"the address of a licence alone is not its text": {"See https://www.apache.org/licenses/LICENSE-2.0", nil},
	} {
		t.Run(what, func(t *testing.T) {
			if got := classify([]byte(tc.text)); !slices.Equal(got, tc.want) {
				t.Errorf("classified as %v, want %v", got, tc.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	good := text{module: "example.org/good", version: "v1.0.0", file: "LICENSE", licences: []string{"MIT"}}
	for what, tc := range map[string]struct {
		bad  text
		want string
	}{
		"a licence that is not allowed is named with its module": {
			text{module: "example.org/bad", version: "v2.0.0", file: "COPYING", licences: []string{"AGPL-3.0", "MIT"}},
			"example.org/bad v2.0.0: AGPL-3.0 in COPYING is not allowed",
		},
		"a text that is not known is an error": {
			text{module: "example.org/bad", version: "v2.0.0", file: "LICENSE"}, "the text of LICENSE is not known",
		},
		"a module without a text is an error": {
			text{module: "example.org/bad", version: "v2.0.0"}, "example.org/bad v2.0.0 has no file of licence text",
		},
	} {
		t.Run(what, func(t *testing.T) {
			if err := judge([]text{good}); err != nil {
				t.Fatalf("without it: %v", err)
			}
			err := judge([]text{good, tc.bad})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("said %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTextsBetweenModuleAndPackageCoverIt(t *testing.T) {
	module := t.TempDir()
	inner := filepath.Join(module, "third", "party")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"LICENSE", "third/Copying.md", "third/party/LICENCE-MIT", "third/party/license.go", "third/README"} {
		if err := os.WriteFile(filepath.Join(module, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := covering(pkg{moduleDir: module, dir: inner})
	if want := []string{"third/party/LICENCE-MIT", "third/Copying.md", "LICENSE"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("covered by %v, %v, want %v", got, err, want)
	}
	if _, err := covering(pkg{moduleDir: inner, dir: module}); err == nil {
		t.Error("a package outside its module is no error")
	}
}

func TestTheBundleHasEveryTextUnderItsModule(t *testing.T) {
	got := string(bundle([]text{
		{module: "example.org/a", version: "v1.0.0", file: "LICENSE", content: []byte("\nfirst text\n")},
		{module: "example.org/b", version: "v2.0.0", file: "sub/COPYING", content: []byte("second text")},
	}))
	const want = "==== example.org/a v1.0.0: LICENSE\n\nfirst text\n\n==== example.org/b v2.0.0: sub/COPYING\n\nsecond text\n\n"
	if got != want {
		t.Errorf("bundle is %q, want %q", got, want)
	}
}

func TestNoticesAndGosOwnLicenceArePassedOnAndNotListed(t *testing.T) {
	module := t.TempDir()
	for name, content := range map[string]string{"NOTICE.txt": "with thanks to somebody", "LICENSE": string(apache(t)), "notices.go": "package notices"} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]text{}
	if err := addNotices(found, pkg{module: "example.org/a", version: "v1.0.0", moduleDir: module, dir: module}); err != nil {
		t.Fatal(err)
	}
	own, err := goLicence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	texts := append(slices.Collect(maps.Values(found)), own)
	if err := judge(texts); err != nil {
		t.Errorf("judged as licences: %v", err)
	}
	bundled := string(bundle(texts))
	for _, part := range []string{"==== example.org/a v1.0.0: NOTICE.txt\n\nwith thanks to somebody\n", "==== Go and its standard library go1.", "Google"} {
		if !strings.Contains(bundled, part) {
			t.Errorf("the texts lack %q", part)
		}
	}
	if strings.Contains(bundled, "notices.go") {
		t.Error("a source file is taken for a notice")
	}
	if page := string(render(texts)); strings.Contains(page, "NOTICE.txt") || strings.Contains(page, "go1.") {
		t.Errorf("listed:\n%s", page)
	}
}

func TestCompareNamesTheLinesThatDiffer(t *testing.T) {
	if err := compare([]byte("a\nb\n"), []byte("a\nb\n")); err != nil {
		t.Fatal(err)
	}
	err := compare([]byte("a\nold\n"), []byte("a\nnew\n"))
	if err == nil || !strings.Contains(err.Error(), "- old") || !strings.Contains(err.Error(), "+ new") || strings.Contains(err.Error(), "- a") {
		t.Errorf("said %v", err)
	}
}
