package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	good = `{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"cart","namespace":"shop"},"spec":{"host":"cart"}}` + "\n"
	bad  = `{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"till","namespace":"shop"},"spec":{"subsets":[{"name":"a"}]}}` + "\n"
	odd  = `{"apiVersion":"networking.istio.io/v1","kind":"DestinationRule","metadata":{"name":"cart","namespace":"shop"},"spec":{"host":"cart","x":1}}` + "\n"
)

// write puts files into a new folder and returns its path.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestRuns(t *testing.T) {
	folder := write(t, map[string]string{"a.jsonl": good, "b.jsonl": good + bad, "notes.txt": "no JSON"})
	empty := write(t, map[string]string{"a.jsonl": "\n", "notes.txt": good})
	for sentence, c := range map[string]struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr string
	}{
		"accepted objects on standard input":           {stdin: good + good, stdout: "2 objects: 0 refused by Istio\n"},
		"a dash is standard input":                     {args: []string{"-"}, stdin: good, stdout: "1 objects: 0 refused"},
		"a refused object is named":                    {stdin: good + bad, code: 1, stdout: "DestinationRule shop/till: "},
		"a file":                                       {args: []string{filepath.Join(folder, "a.jsonl")}, stdout: "1 objects: 0 refused"},
		"a folder means its .jsonl files":              {args: []string{folder}, code: 1, stdout: "3 objects: 1 refused by Istio"},
		"several arguments are added up":               {args: []string{folder, "-"}, stdin: bad, code: 1, stdout: "4 objects: 2 refused by Istio"},
		"warnings are shown on request and do no harm": {args: []string{"--warnings"}, stdin: odd, stdout: "DestinationRule shop/cart: warning: ignored by Istio: "},
		"help goes to standard output":                 {args: []string{"--help"}, stdout: "--warnings"},
		"nothing at all is not a pass":                 {code: 2, stderr: "nothing was checked"},
		"files without an object are not a pass":       {args: []string{empty}, code: 2, stderr: "nothing was checked"},
		"a folder without such files is not a pass":    {args: []string{t.TempDir()}, code: 2, stderr: "no file *.jsonl in "},
		"a file that is not there":                     {args: []string{filepath.Join(folder, "c.jsonl")}, code: 2, stderr: "c.jsonl"},
		"a file that is no JSON is named with line":    {args: []string{filepath.Join(folder, "notes.txt")}, code: 2, stderr: "notes.txt: line 1: "},
		"an unknown flag":                              {args: []string{"--warn"}, code: 2, stderr: "see validate --help"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(c.args, strings.NewReader(c.stdin), &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.Contains(stdout.String(), c.stdout) {
				t.Errorf("stdout %q, want %q", &stdout, c.stdout)
			}
			if c.stderr == "" && stderr.Len() > 0 || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stderr %q, want %q", &stderr, c.stderr)
			}
		})
	}
}

func TestWarningsAreNotShownUnasked(t *testing.T) {
	var stdout, stderr bytes.Buffer
	run(nil, strings.NewReader(odd), &stdout, &stderr)
	if strings.Contains(stdout.String(), "warning") {
		t.Errorf("stdout %q", &stdout)
	}
}
