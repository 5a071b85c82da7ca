package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWhatCannotRunSaysWhyAndEndsWith2(t *testing.T) {
	empty := t.TempDir()
	for want, args := range map[string][]string{
		"unknown command \"inspekt\"":                           {"inspekt"},
		"unknown command \"version\": --version tells the ver":  {"version"},
		"unknown command \"version\": --version tells the vers": {"version", "--client"},
		"unknown flag: --treshold":                              {"lint", "--treshold", "error"},
		"accepts at most 1 arg(s)":                              {"lint", "a", "b", "-f", "testdata/web.yaml"},
		"-f testdata/none.yaml: stat testdata/none.yaml":        {"lint", "-f", "testdata/none.yaml"},
		"no file ends in .yaml, .yml, .json":                    {"lint", "-f", empty},
		"--failure-threshold: \"fatal\" is none of error":       {"lint", "-f", "testdata/web.yaml", "--failure-threshold", "fatal"},
		"-o xml: must be table, json or yaml":                   {"lint", "-f", "testdata/web.yaml", "-o", "xml"},
		"--ignore ARI9999: there is no such code":               {"lint", "-f", "testdata/web.yaml", "--ignore", "ARI9999"},
		"--explain \"ARI9999\": there is no such code":          {"lint", "--explain", "ARI9999"},
		"--explain \"\": there is no such code":                 {"lint", "--explain", ""},
		"-o csv: must be table, json or yaml":                   {"lint", "--explain", "ARI0404", "-o", "csv"},
		"-f -: stdin is empty":                                  {"lint", "-f", "-"},
		"-n \"BAD/NS\" is no namespace":                         {"lint", "-n", "BAD/NS", "-f", "testdata/web.yaml"},
		"\"testdata/web.yaml\" is no name of a Rollout":         {"lint", "testdata/web.yaml"},
		"did you mean -f testdata/web.yaml?":                    {"lint", "testdata/web.yaml"},
		"did you mean -f testdata?":                             {"lint", "testdata", "--kubeconfig", filepath.Join(empty, "none")},
		"--allow-prometheus-addresses: \"x\" must begin with":   {"lint", "-f", "testdata/web.yaml", "--allow-prometheus-addresses", "x"},
		"--prometheus-address: the URL must begin with http":    {"lint", "-f", "testdata/web.yaml", "--prometheus-address", "ftp://a"},
		"--allow-cross-namespace: \"A_B\" is no namespace":      {"lint", "-f", "testdata/web.yaml", "--allow-cross-namespace", "A_B"},
		"no Rollout \"cart/web\" that Istio routes was found":   {"lint", "cart/web", "-f", "testdata/web.yaml"},
		"\"shop/\" is no name of a Rollout":                     {"lint", "shop/", "-f", "testdata/web.yaml"},
		"\"/web\" is no name of a Rollout":                      {"lint", "/web", "-f", "testdata/web.yaml"},
		"of a cluster, -n chooses the namespace":                {"lint", "shop/web"},
		"no Rollout \"cart\" that Istio routes was found":       {"lint", "cart", "-f", "testdata/web.yaml"},
		"--complete is about files":                             {"lint", "--complete"},
		"finding the cluster (--kubeconfig, --context), or gi":  {"lint", "--kubeconfig", filepath.Join(empty, "none")},
		"--request-timeout 0s: must be above 0":                 {"lint", "--request-timeout", "0s"},
	} {
		got := running(t, nil, args...)
		if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%v: exit code %d, on stdout %q, on stderr %q, want %q", args, got.code, got.out, got.err, want)
		}
		if !strings.HasPrefix(got.err, "rollouts-plugin-trafficrouter-istio: ") {
			t.Errorf("%v: %q does not say who speaks", args, got.err)
		}
	}
}

func TestTheThresholdDecidesTheExitCode(t *testing.T) {
	for threshold, want := range map[string]int{"error": 0, "warning": 1, "info": 1} {
		args := []string{"lint", "-f", "testdata/findings.yaml", "--ignore", "ARI0202", "--ignore", "ARI0305", "--failure-threshold", threshold}
		if got := running(t, nil, args...); got.code != want {
			t.Errorf("%s: exit code %d, want %d", threshold, got.code, want)
		}
	}
}

func TestAFolderIsReadWithAllBelowIt(t *testing.T) {
	folder := t.TempDir()
	for name, document := range map[string]int{"rollout.yaml": 0, "a/service.YML": 1, "a/b/rule.yaml": 2, "routes.yaml": 3} {
		put(t, filepath.Join(folder, name), part(t, "web.yaml", document))
	}
	put(t, filepath.Join(folder, ".git/config.yaml"), "{{")
	put(t, filepath.Join(folder, "README.md"), "{{")
	got := running(t, nil, "lint", "-f", folder, "--complete", "--failure-threshold", "info")
	if got.code != 0 || got.out != "1 Rollout checked: 0 errors, 0 warnings, 0 info\n" {
		t.Errorf("%+v", got)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSeveralSourcesAreOneInput(t *testing.T) {
	rest := part(t, "web.yaml", 1) + "---\n" + part(t, "web.yaml", 2) + "---\n" + part(t, "web.yaml", 3)
	folder := t.TempDir()
	put(t, filepath.Join(folder, "rollout.yaml"), part(t, "web.yaml", 0))
	got := running(t, reading(rest), "lint", "-f", filepath.Join(folder, "rollout.yaml"), "-f", "-", "--complete")
	if got.code != 0 || got.err != "" {
		t.Errorf("%+v", got)
	}
}

func TestWhereNoRolloutIsNothingIsFine(t *testing.T) {
	service := part(t, "web.yaml", 1)
	for sentence, tc := range map[string]struct {
		args []string
		text string
		code int
		says string
	}{
		"a Service alone":                     {nil, service, exitFailed, "no Rollout that Istio routes was found"},
		"a Service alone, which is allowed":   {[]string{"--allow-empty"}, service, exitFine, "0 Rollouts checked"},
		"comments alone":                      {nil, "# nothing was rendered\n", exitFailed, "no Rollout that Istio routes was found"},
		"blanks alone":                        {[]string{"--allow-empty"}, " \n\n", exitFailed, "stdin is empty"},
		"a Rollout of another plugin is told": {nil, strings.Replace(part(t, "web.yaml", 0), "argoproj-labs/istio", "other/plugin", 1), exitFailed, "note: Rollout shop/web names other plugins"},
		"what cannot be read is a finding":    {nil, "a: [\n", exitFindings, "ARI0001"},
		"a list of objects is a finding":      {nil, "- {apiVersion: v1, kind: Service}\n", exitFindings, "wrap it in kind: List"},
	} {
		got := running(t, reading(tc.text), append([]string{"lint", "-f", "-"}, tc.args...)...)
		if got.code != tc.code || !strings.Contains(got.out+got.err, tc.says) {
			t.Errorf("%s: %+v", sentence, got)
		}
	}
}

func TestAFolderWithoutFilesIsNotedWhereThatIsFine(t *testing.T) {
	empty := t.TempDir()
	got := running(t, nil, "lint", "-f", empty, "--allow-empty")
	if got.code != exitFine || !strings.Contains(got.out, "note: -f "+empty) || !strings.Contains(got.out, "no file ends in") {
		t.Errorf("%+v", got)
	}
	got = running(t, nil, "lint", "-f", empty, "-f", "testdata/web.yaml", "--allow-empty")
	if got.code != exitFine || !strings.Contains(got.out, "1 Rollout checked") {
		t.Errorf("with a file beside it: %+v", got)
	}
}

func TestTheNamespaceChoosesBetweenRolloutsOfOneName(t *testing.T) {
	all := part(t, "web.yaml", 0) + "---\n" + strings.ReplaceAll(part(t, "web.yaml", 0), "shop", "other")
	for name, want := range map[string]string{"web": "2 Rollouts checked", "shop/web": "1 Rollout checked", "other/web": "1 Rollout checked"} {
		if got := running(t, reading(all), "lint", name, "-f", "-"); !strings.Contains(got.out, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestLinksToFilesAreFollowedAndLinksToFoldersAreNamed(t *testing.T) {
	there, folder := t.TempDir(), t.TempDir()
	for name, document := range map[string]int{"rollout.yaml": 0, "service.yaml": 1, "rule.yaml": 2, "routes.yaml": 3} {
		put(t, filepath.Join(there, name), part(t, "findings.yaml", document))
		link(t, filepath.Join(there, name), filepath.Join(folder, name))
	}
	link(t, there, filepath.Join(folder, "more"))
	link(t, there, filepath.Join(folder, "..data")) // as in a mounted ConfigMap
	root := filepath.Join(t.TempDir(), "root")
	link(t, folder, root)
	got := running(t, nil, "lint", "-f", root, "--complete")
	for _, want := range []string{root + "/rollout.yaml:23: error ARI0202", "1 Rollout checked: 2 errors", "note: " + root + "/more is a link to a folder, which"} {
		if got.code != exitFindings || !strings.Contains(got.out, want) {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	if strings.Contains(got.out, "..data") {
		t.Errorf("%s", got.out)
	}
	link(t, filepath.Join(there, "gone"), filepath.Join(folder, "gone.yaml"))
	if got := running(t, nil, "lint", "-f", root); got.code != exitFailed || !strings.Contains(got.err, "gone") {
		t.Errorf("%+v", got)
	}
}

func link(t *testing.T, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Fatal(err)
	}
}

func TestTheOperatorsFlagsDecideAboutAHealthGate(t *testing.T) {
	text, err := os.ReadFile("testdata/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	gated := strings.Replace(string(text), "          argoproj-labs/istio:\n", "          argoproj-labs/istio:\n            verify: {level: Mesh}\n            healthGate: {provider: {prometheus: {address: \"http://own:9090\"}}}\n", 1)
	for code, flags := range map[string][]string{
		"":        nil,
		"ARI0102": {"--prometheus-address=http://other:9090"},
		" ":       {"--prometheus-address=http://other:9090", "--allow-prometheus-addresses=http://own:9090/"},
		"  ":      {"--allow-prometheus-addresses=*"},
	} {
		got := running(t, reading(gated), append([]string{"lint", "-f", "-", "--complete"}, flags...)...)
		if code := strings.TrimSpace(code); strings.Contains(got.out, "ARI") != (code != "") || !strings.Contains(got.out, code) || got.err != "" {
			t.Errorf("%v: %+v", flags, got)
		}
	}
}

func TestStdinThatBreaksOffIsNoCleanInput(t *testing.T) {
	got := running(t, func(p *Program) { p.In = iotest.ErrReader(errors.New("broken pipe")) }, "lint", "-f", "-")
	if got.code != exitFailed || !strings.Contains(got.err, "reading stdin: broken pipe") {
		t.Errorf("%+v", got)
	}
}

func TestStdinWithoutAnEndIsReadToTheLimit(t *testing.T) {
	got := running(t, func(p *Program) { p.In = endless{} }, "lint", "-f", "-")
	if got.code != exitFindings || !strings.Contains(got.out, "split the file") {
		t.Errorf("%+v", got)
	}
}

// endless is a reader of comments.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

func TestOutputThatCannotBeWrittenIsAFailure(t *testing.T) {
	got := running(t, func(p *Program) { p.Out = closed{} }, "lint", "-f", "testdata/web.yaml")
	if got.code != exitFailed || !strings.Contains(got.err, "closed") {
		t.Errorf("%+v", got)
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAnEndedContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var p Program
	running(t, func(q *Program) { p = *q }, "--version")
	if code := Run(ctx, []string{"lint", "-f", "testdata/web.yaml"}, p); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}

func TestAPersonIsToldFromTheController(t *testing.T) {
	for sentence, tc := range map[string]struct {
		name string
		args []string
		want bool
	}{
		"kubectl's flags before a command":  {"plugin", []string{"-n", "shop", "--context=a", "inspect", "web"}, true},
		"a flag in one word before it":      {"plugin", []string{"-nshop", "lint"}, true},
		"a flag without a value before it":  {"plugin", []string{"--watch", "inspect", "web"}, true},
		"the plugin's flag before it":       {"plugin", []string{"--log-level=debug", "lint"}, true},
		"a namespace called as a command":   {"plugin", []string{"--namespace", "lint"}, false},
		"a folder called as a command":      {"plugin", []string{"-f", "lint"}, false},
		"a command behind two dashes":       {"plugin", []string{"-n", "shop", "--", "lint"}, false},
		"a word that is none, behind flags": {"plugin", []string{"-n", "shop", "web", "lint"}, false},
		"a single dash":                     {"plugin", []string{"-"}, false},
		"nothing":                           {"plugin", nil, false},
		"the plugin's flags":                {"plugin", []string{"--metrics-address=:8082"}, false},
		"help":                              {"plugin", []string{"--help"}, false},
		"a flag and a word":                 {"plugin", []string{"--metrics-address", ":8082"}, false},
		"an empty word":                     {"plugin", []string{""}, false},
		"a command":                         {"plugin", []string{"lint"}, true},
		"a word that is none":               {"plugin", []string{"lnit"}, true},
		"nothing, as a kubectl plugin":      {"/bin/kubectl-argo_rollouts_istio", nil, true},
		"a flag, as a kubectl plugin":       {"kubectl-argo_rollouts_istio", []string{"--help"}, true},
		"kubectl in the name of a folder":   {"/kubectl-plugins/plugin", nil, false},
	} {
		if got := Asked(tc.name, tc.args); got != tc.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}

func TestFlagsMayStandBeforeTheCommand(t *testing.T) {
	for sentence, tc := range map[string]struct {
		args []string
		want said
	}{
		"as kubectl has them":           {[]string{"-n", "shop", "--context", "a", "lint", "-f", "testdata/web.yaml"}, said{out: "1 Rollout checked", code: 0}},
		"in one word each":              {[]string{"-nshop", "--request-timeout=5s", "lint", "-f", "testdata/web.yaml"}, said{out: "1 Rollout checked", code: 0}},
		"with all of the command's":     {[]string{"-f", "testdata/findings.yaml", "--complete", "-o", "json", "lint"}, said{out: `"code": "ARI0202"`, code: 1}},
		"help of the command":           {[]string{"-n", "shop", "lint", "--help"}, said{out: "lint [ROLLOUT]", code: 0}},
		"help of the command, in front": {[]string{"--help", "lint"}, said{out: "lint [ROLLOUT]", code: 0}},
		"help of all":                   {[]string{"--help"}, said{out: "Available Commands", code: 0}},
		"one that it does not have":     {[]string{"--watch", "lint", "-f", "testdata/web.yaml"}, said{err: "unknown flag: --watch", code: 2}},
		"no command behind them":        {[]string{"-n", "shop", "limt"}, said{err: `unknown command "limt"`, code: 2}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := running(t, nil, tc.args...)
			if got.code != tc.want.code || !strings.Contains(got.out, tc.want.out) || !strings.Contains(got.err, tc.want.err) || (tc.want.err == "") != (got.err == "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestTheProgramIsCalledAsThePersonCallsIt(t *testing.T) {
	for name, want := range map[string]string{
		"/usr/bin/rollouts-plugin-trafficrouter-istio": "rollouts-plugin-trafficrouter-istio",
		"kubectl-argo_rollouts_istio":                  "kubectl argo-rollouts-istio",
		"kubectl-argo-rollouts_istio":                  "kubectl argo rollouts-istio",
		"kubectl-argo_rollouts_istio.exe":              "kubectl argo-rollouts-istio",
		"kubectl":                                      "kubectl",
	} {
		if got := CommandName(name); got != want {
			t.Errorf("%s is called %q, want %q", name, got, want)
		}
	}
}

func TestEachCommandHasItsLine(t *testing.T) {
	if got := Summaries(); !strings.HasPrefix(got, "  lint       Find what") || strings.Count(got, "\n") != len(commands) {
		t.Errorf("%q", got)
	}
}

func TestColourIsForTerminals(t *testing.T) {
	none := func(string) string { return "" }
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if Terminal(file, none) || Terminal(&strings.Builder{}, none) {
		t.Error("a file is taken for a terminal")
	}
	for sentence, tc := range map[string]struct {
		terminal bool
		name     string
		want     bool
	}{
		"a terminal":                       {true, "", true},
		"no terminal":                      {false, "", false},
		"a terminal whose user wants none": {true, "NO_COLOR", false},
		"a terminal that cannot":           {true, "TERM", false},
	} {
		got := welcome(tc.terminal, func(name string) string {
			if name == tc.name {
				return "dumb"
			}
			return ""
		})
		if got != tc.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}

func TestWhatAFileSaysMovesNoCursor(t *testing.T) {
	got := running(t, reading("apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: \"\\e[31mweb\"}\nspec: {strategy: {canary: {trafficRouting: {istio: {virtualService: {name: web}}, plugins: {argoproj-labs/istio: {}}}}}}\n"), "lint", "-f", "-")
	if strings.ContainsRune(got.out, '\x1b') || !strings.Contains(got.out, "?[31mweb") {
		t.Errorf("stdout: %q", got.out)
	}
}

func TestTextIsWrappedAtBlanks(t *testing.T) {
	for text, want := range map[string]string{
		"":               "",
		"a b c":          "a b c",
		"aaaa bbbb cccc": "aaaa bbbb\n> cccc",
		"aaaaaaaaaaaa b": "aaaaaaaaaaaa\n> b",
		"äöüß äöüß c":    "äöüß äöüß\n> c",
		"a  b\n c":       "a b c",
	} {
		if got := wrap(text, "> ", 10); got != want {
			t.Errorf("%q is wrapped as %q, want %q", text, got, want)
		}
	}
}
