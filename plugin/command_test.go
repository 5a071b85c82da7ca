package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// byController is the environment in which the controller starts the plugin.
func byController(name string) string {
	if name == handshake.MagicCookieKey {
		return handshake.MagicCookieValue
	}
	return ""
}

func TestAPersonGetsACommandAndTheControllerNever(t *testing.T) {
	for sentence, tc := range map[string]struct {
		env    func(string) string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"a person asks for a command":            {nothing, []string{"lint", "--explain", "ARI0101"}, 0, "ARI0101 (error)", ""},
		"a person asks for a command's help":     {nothing, []string{"lint", "--help"}, 0, "Usage:", ""},
		"a person asks for a command's mistake":  {nothing, []string{"lint", "--no-such"}, 2, "", "unknown flag: --no-such"},
		"a person asks for no command there is":  {nothing, []string{"limt"}, 2, "", `unknown command "limt"`},
		"a person asks for nothing":              {nothing, nil, 2, "", "lint       Find what will go wrong"},
		"a person has flags before a command":    {nothing, []string{"-n", "shop", "lint", "--explain", "ARI0101"}, 0, "ARI0101 (error)", ""},
		"a person has all flags before it":       {nothing, []string{"--explain=ARI0101", "--context", "a", "lint"}, 0, "ARI0101 (error)", ""},
		"a person has the plugin's flag":         {nothing, []string{"--metrics-address=:1", "lint"}, 2, "", "unknown flag: --metrics-address"},
		"a person has the plugin's flags only":   {nothing, []string{"--namespace", "lint"}, 2, "", "is started by its controller"},
		"the controller's args name a namespace": {byController, []string{"--namespace=shop", "lint"}, 2, "", "is no flag: each of the args"},
		"the controller's args hold kubectl's":   {byController, []string{"-n", "shop", "lint"}, 2, "", "unknown shorthand flag: 'n'"},
		"a person asks for help":                 {nothing, []string{"--help"}, 0, "Commands for people", ""},
		"the controller's args hold a command":   {byController, []string{"lint"}, 2, "", `[\"lint\"] is no flag`},
		"the controller's args hold a help flag": {byController, []string{"lint", "--no-such"}, 2, "", "unknown flag: --no-such"},
		// What is no such line it takes for debug output.
		"the controller shows wrong args as an error": {byController, []string{"--kube-qps=0"}, 2, "", `"@level":"error"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(tc.args, tc.env, &stdout, &stderr)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, stream := range []struct{ name, text, want string }{{"stdout", stdout.String(), tc.stdout}, {"stderr", stderr.String(), tc.stderr}} {
				if !strings.Contains(stream.text, stream.want) || (stream.want == "") != (stream.text == "") {
					t.Errorf("on %s: %q, want %q", stream.name, stream.text, stream.want)
				}
			}
		})
	}
}

func TestACommandReadsFilesByItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(path, []byte("kind: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"lint", "-f", path}, nothing, &stdout, &stderr); code != 1 || stderr.Len() > 0 {
		t.Errorf("exit code %d, on stderr: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), filepath.ToSlash(path)+":1: error ARI0001") || strings.Contains(stdout.String(), "\x1b") {
		t.Errorf("on stdout: %s", &stdout)
	}
}
