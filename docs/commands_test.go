package docs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/docs/markdown"
)

// last is how long before the deadline of the whole test a block that runs is ended,
// so that the test can say which one it was.
const last = 20 * time.Second

// runs runs a block in the repository's root, and ends all that it started.
func runs(ctx context.Context, block string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", block)
	cmd.Dir = ".."
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

func TestEveryRunnableCommandSucceeds(t *testing.T) {
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-last))
		defer cancel()
	}
	ran := 0
	for _, f := range fences(t, "sh") {
		if f.Kind != markdown.Runnable {
			continue
		}
		ran++
		if out, err := runs(ctx, f.Body); err != nil {
			t.Errorf("%s: %v, of\n%s\nwhich says:\n%s", f.At, err, f.Body, out)
		}
	}
	if ran == 0 {
		t.Error("no block of commands is marked as runnable")
	}
}

func TestABlockThatFailsIsAnErrorAndOneThatHangsIsEnded(t *testing.T) {
	if out, err := runs(t.Context(), "false; echo went on"); err == nil || len(out) > 0 {
		t.Errorf("a command that fails in the middle: %v, %s", err, out)
	}
	if out, err := runs(t.Context(), "test -f go.mod && echo here"); err != nil || string(out) != "here\n" {
		t.Errorf("in the repository's root: %v, %s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := runs(ctx, "sleep 1000 & sleep 1000"); err == nil {
		t.Error("a block that hangs is no error")
	}
}

func TestEveryCommandCallsWhatThereIs(t *testing.T) {
	know := known(t)
	for _, f := range fences(t, "sh") {
		for _, fault := range know.faults(f) {
			t.Errorf("%s: %s", f.At, fault)
		}
	}
	for _, page := range pages(t) {
		for _, code := range page.InlineCode() {
			for _, fault := range know.inlineFaults(code) {
				t.Errorf("%s: %s", code.At, fault)
			}
		}
	}
}

// foreign are programs that pages may call, that are not of this repository, and of
// which nothing more is known.
var foreign = strings.Fields("awk base64 cat chmod cp curl docker echo export grep head jq kustomize ln mkdir mv openssl sed sha256sum sort tar tee unzip")

// verbs are what may follow a program, or a program and its verb.
var verbs = map[string]string{
	"cosign":                "verify-blob",
	"gh":                    "attestation",
	"git":                   "clone rev-parse show",
	"go":                    "build doc install list run test vet",
	"helm":                  "install template upgrade",
	"kubectl":               "annotate apply argo create delete describe edit get kustomize label logs patch port-forward replace rollout",
	"kubectl argo":          "rollouts",
	"kubectl argo rollouts": "abort get promote retry set status",
	"kubectl rollout":       "restart status",
}

// foreignFlags are flags in running text that belong to other programs.
var foreignFlags = strings.Fields("--context --patch-file --field-selector --show-managed-fields --previous --server-side --dry-run " +
	"--namespaced --instance-id --qps --burst") // the controller's

// faults is what a block of commands names and what is not there.
func (k knowledge) faults(f markdown.Fence) []string {
	at := inBlock(f)
	var faults []string
	for _, words := range markdown.Commands(f.Body) {
		faults = append(faults, k.faultsOf(words, at)...)
		if !at.theirs {
			faults = append(faults, missing(words, at)...)
		}
		at = at.after(words)
	}
	return faults
}

// isChecked says whether more is known of a command than that there is the program.
func isChecked(words []string) bool {
	name := filepath.Base(words[0])
	return name == "make" || name == "cd" || name == program || verbs[name] != "" || strings.HasPrefix(words[0], "hack/")
}

func isForeign(words []string) bool { return slices.Contains(foreign, filepath.Base(words[0])) }

// faultsOf looks at one command.
func (k knowledge) faultsOf(words []string, at place) []string {
	switch name := filepath.Base(words[0]); {
	case name == "make":
		return k.madeUp(words[1:])
	case name == "cd":
		return at.cdFaults(words[1:])
	case name == program:
		return k.pluginFaults(words[1:])
	case name == "kubectl" && len(words) > 1 && words[1] == "argo-rollouts-istio":
		return k.pluginFaults(words[2:])
	case name == "go":
		return append(verbFaults(name, words[1:]), k.goFaults(words[1:], at)...)
	case verbs[name] != "":
		return verbFaults(name, words[1:])
	case isForeign(words):
		return nil
	case strings.HasPrefix(words[0], "hack/"):
		return missing([]string{"-f", words[0]}, root)
	default:
		return []string{fmt.Sprintf("%s: no such program is known here; is it a typing error? Else add it to the list foreign in docs/commands_test.go", words[0])}
	}
}

// madeUp are the targets and variables that the Makefile does not have.
func (k knowledge) madeUp(words []string) []string {
	var faults []string
	for _, word := range words {
		switch name, _, isVariable := strings.Cut(word, "="); {
		case strings.HasPrefix(word, "-"):
		case isVariable && !k.variables[name]:
			faults = append(faults, fmt.Sprintf("make %s: the Makefile uses no such variable", word))
		case !isVariable && !k.targets[word]:
			faults = append(faults, fmt.Sprintf("make %s: the Makefile has no such target", word))
		}
	}
	return faults
}

// pluginFaults holds the plugin's arguments against its help.
func (k knowledge) pluginFaults(words []string) []string {
	text, command := k.help[""], program
	if len(words) > 0 && !strings.HasPrefix(words[0], "-") {
		command += " " + words[0]
		if text = k.help[words[0]]; text == "" {
			return []string{fmt.Sprintf("%s: there is no such command in its --help", command)}
		}
	}
	return flagFaults(command, words, text)
}

// flagFaults are the flags that a text does not define.
func flagFaults(command string, words []string, text string) []string {
	var faults []string
	for _, word := range words {
		if strings.HasPrefix(word, "-") && word != "-" && !defines(text, word) {
			faults = append(faults, fmt.Sprintf("%s %s: its --help has no such flag", command, word))
		}
	}
	return faults
}

// defines looks for a flag in a help text.
func defines(text, flag string) bool {
	flag, _, _ = strings.Cut(flag, "=")
	return regexp.MustCompile(`(^|[\s,])` + regexp.QuoteMeta(flag) + `($|[\s,=])`).MatchString(text)
}

// verbFaults looks at what follows the name of a program that has verbs.
func verbFaults(name string, words []string) []string {
	verb, rest := cutVerb(words)
	if verbs[name] == "" || verb == "" {
		return nil
	}
	if !slices.Contains(strings.Fields(verbs[name]), verb) {
		return []string{fmt.Sprintf("%s %s: no such verb is known here; is it a typing error? Else add it to the table verbs in docs/commands_test.go", name, verb)}
	}
	return verbFaults(name+" "+verb, rest)
}

// cutVerb is the first word that is no flag and not the value of one, and what follows.
func cutVerb(words []string) (verb string, rest []string) {
	for i := 0; i < len(words); i++ {
		switch {
		case !strings.HasPrefix(words[i], "-"):
			return words[i], words[i+1:]
		case !strings.Contains(words[i], "="):
			i++
		}
	}
	return "", nil
}

// fileFlags are followed by the name of a file or folder. F is the variable of make.
var fileFlags = []string{"-f", "-k", "--filename", "--patch-file", "--kustomize", "--values", "F"}

// missing are the files that a command names and that are not there.
func missing(words []string, at place) []string {
	var faults []string
	for i, word := range words {
		flag, names, joined := strings.Cut(word, "=")
		if !slices.Contains(fileFlags, flag) {
			faults = append(faults, at.pathFault(word)...)
			continue
		}
		if !joined && i+1 < len(words) {
			names = words[i+1]
		}
		for _, name := range strings.Fields(names) {
			if name != "-" && !strings.Contains(name, "://") && len(at.all(name)) == 0 {
				faults = append(faults, fmt.Sprintf("%s %s: no such file beside the page or in the repository's root. %s", flag, name, readersOwn))
			}
		}
	}
	return faults
}

// inlineFaults looks at a piece of code in running text: a flag, commands, or a path.
// Files of commands are mostly the reader's own there.
func (k knowledge) inlineFaults(code markdown.Code) []string {
	if strings.HasPrefix(code.Text, "--") {
		return k.unknownFlags(code.Text)
	}
	at := anywhere(code.At)
	var faults []string
	for _, words := range markdown.Commands(code.Text) {
		if isChecked(words) {
			faults = append(faults, k.faultsOf(words, at)...)
		}
	}
	if page, _, _ := strings.Cut(code.At, ":"); page != ofOthers {
		faults = append(faults, beside(code.At).pathFault(code.Text)...)
	}
	return faults
}

// ofOthers is the page that a program writes with paths in other modules.
const ofOthers = "docs/licences.md"

// unknownFlags are those that nothing in this repository defines.
func (k knowledge) unknownFlags(text string) []string {
	var faults []string
	for _, word := range strings.Fields(text) {
		flag, _, _ := strings.Cut(word, "=")
		if len(flag) < 4 || !strings.HasPrefix(flag, "--") || strings.Contains(flag, "…") || defines(k.flags, flag) || slices.Contains(foreignFlags, flag) {
			continue
		}
		faults = append(faults, fmt.Sprintf("%s: neither the plugin nor a command in e2e/cmd has such a flag. "+
			"If it is another program's, add it to the list foreignFlags in docs/commands_test.go", flag))
	}
	return faults
}

func TestACommandThatCallsWhatIsNotThereIsFound(t *testing.T) {
	know := known(t)
	for name, tc := range map[string]struct{ text, want string }{
		"a make target":                          {"make biuld", "no such target"},
		"a variable of make":                     {"make simulate FILE=examples/subset-level", "no such variable"},
		"a file in a variable of make":           {"make simulate F=nosuch.yaml", "no such file"},
		"one of several":                         {"make simulate F='examples/subset-level nosuch.yaml'", "F nosuch.yaml"},
		"a program":                              {"mkae build", "no such program"},
		"a command of the plugin":                {"bin/" + program + " lnit", "no such command"},
		"a flag of the plugin":                   {program + " lint --fiel x", "no such flag"},
		"a flag of kubectl's plugin":             {"kubectl argo-rollouts-istio lint --no-flag", "no such flag"},
		"a flag of the plugin from its source":   {"go run ./plugin lint --fiel x", "no such flag"},
		"a file":                                 {"kubectl apply -f nowhere.yaml", "no such file"},
		"a kustomization":                        {"kubectl apply -k nosuch", "no such file"},
		"a file without a flag":                  {"cat examples/nosuch/rollout.yaml", "examples/nosuch/rollout.yaml"},
		"a script":                               {"hack/nothing.sh", "no such file"},
		"a folder":                               {"cd nosuchdir", "no such folder"},
		"a folder that is a file":                {"cd README.md", "no such folder"},
		"a folder outside of the repository":     {"cd ..", "no such folder"},
		"a verb of kubectl":                      {"kubectl aply -f README.md", "kubectl aply: no such verb"},
		"a verb behind a flag":                   {"kubectl -n shop gte rollouts", "kubectl gte: no such verb"},
		"a verb of a verb":                       {"kubectl argo rollouts stauts web", "kubectl argo rollouts stauts: no such verb"},
		"a verb of git":                          {"git lcone https://example.com/x", "no such verb"},
		"a program of the lab":                   {"cd e2e && go run ./cmd/nosuch", "./cmd/nosuch"},
		"a program of the lab, from the root":    {"go run ./cmd/bench", "./cmd/bench"},
		"a flag of a program of the lab":         {"cd e2e && go run ./cmd/bench --prts=idle", "--prts=idle: its --help"},
		"a letter of a program of the lab":       {"cd e2e && go run ./cmd/simulate -x -", "-x: its --help"},
		"a flag of another program of the lab":   {"cd e2e && go run ./cmd/lab up --parts=idle", "--parts=idle: its --help"},
		"a package that is no program":           {"go run ./pkg/guard", "no program"},
		"a program without the dot":              {"cd e2e && go run cmd/bench", "./cmd/bench"},
		"a package":                              {"go test ./e2e/nosuch -run TestNoSuch", "./e2e/nosuch"},
		"packages below a folder":                {"go vet ./nosuch/...", "./nosuch/..."},
		"a test":                                 {"go test -run TestNoSuch ./pkg/guard", "-run TestNoSuch"},
		"a test of another package":              {"cd e2e && go test -run TestARolloutMoves ./istio", "-run TestARolloutMoves"},
		"a test by a pattern that is no pattern": {"go test -run 'Test(' ./pkg/guard", "-run Test("},
		"a benchmark":                            {"go test -run '^$' -bench=NoSuch ./...", "-bench NoSuch"},
		"a fuzz target":                          {"go test -fuzz FuzzNoSuch ./pkg/jsonpatch", "-fuzz FuzzNoSuch"},
		"a file of the reader's own":             {"!cd deploy && make simulate F=shop.yaml && kubectl apply -k overlays/prod", ""},
		"another mistake beside such a file":     {"!cd e2e && go run ./cmd/nosuch -f ../deploy/shop.yaml", "./cmd/nosuch"},
		"a build and what it builds":             {"make build && bin/" + program + " lint -f examples/subset-level", ""},
		"an address":                             {"kubectl apply -f https://example.com/x.yaml", ""},
		"a pipe":                                 {"kubectl -n shop get x | kubectl argo-rollouts-istio lint -f -", ""},
		"programs of the lab":                    {"cd e2e && go run -race ./cmd/lab build && go run ./cmd/simulate -f - --scenario rollback", ""},
		"a program of another module":            {"go run honnef.co/go/tools/cmd/staticcheck@latest ./...", ""},
		"a folder that the block makes":          {"git clone https://example.com/it.git && cd it\nmkdir -p /tmp/x && cd x", ""},
		"tests":                                  {"go test -run 'TestACommand|Nothing/sub' ./docs && go test -run '^$' -bench . ./... && go test ./pkg/...", ""},
		"a subshell":                             {"(cd e2e && go test ./lab)\ngo test ./pkg/guard", ""},
	} {
		f := markdown.Fence{At: "README.md:1", Language: "sh"}
		var theirs bool
		if f.Body, theirs = strings.CutPrefix(tc.text, "!"); theirs {
			f.Marker = markdown.Marker{Kind: markdown.Fragment, Why: "it is the reader's"}
		}
		wantFaults(t, name+": "+f.Body, know.faults(f), tc.want)
	}
}

func TestCodeInRunningTextThatNamesWhatIsNotThereIsFound(t *testing.T) {
	know := known(t)
	for name, tc := range map[string]struct{ code, want string }{
		"a make target":                     {"make nothing", "no such target"},
		"a make target with a variable":     {"make nosuch F=x", "no such target"},
		"a variable of make":                {"make simulate G=x", "no such variable"},
		"a flag":                            {"--alow-cross-namespace", "--alow-cross-namespace"},
		"a flag behind another":             {"--parts=idle --idel=1,1000", "--idel"},
		"a flag of a command of the plugin": {program + " lint --hlep", "no such flag"},
		"a command of the plugin in a pipe": {"helm template x | " + program + " lnit", "no such command"},
		"a program of the lab":              {"go run ./cmd/nosuch", "./cmd/nosuch"},
		"a flag of a program of the lab":    {"go run ./cmd/matrix --prts", "--prts"},
		"a test of some package":            {"go test … -run TestNoSuch", "-run TestNoSuch"},
		"a test of no package":              {"go test -v -run=TestNoSuch", "-run TestNoSuch"},
		"a test of a package of the lab":    {"go test ./mesh -run TestNoSuch", "-run TestNoSuch"},
		"a package":                         {"go test ./nosuch", "./nosuch"},
		"a verb of go":                      {"go biuld ./cmd/simulate", "no such verb"},
		"a verb of kubectl":                 {"kubectl aply", "no such verb"},
		"a file of an example":              {"examples/nosuch/rollout.yaml", "examples/nosuch/rollout.yaml"},
		"a folder of the lab":               {"e2e/cmd/nosuch", "e2e/cmd/nosuch"},
		"packages":                          {"pkg/nosuch/...", "pkg/nosuch"},
		"a folder from beside the page":     {"../examples/nosuch", "../examples/nosuch"},
		"a file below the page's folder":    {"images/nosuch.svg", "images/nosuch.svg"},
		"a line of a file":                  {"docs/nosuch.md:12", "docs/nosuch.md"},
		"files by a pattern":                {"examples/*/nosuch.yaml", "examples/*/nosuch.yaml"},
		"a target that is there":            {"make demo", ""},
		"a file of the reader's own":        {"make simulate F=rollout.yaml", ""},
		"a flag with a value":               {"--allow-cross-namespace=edge", ""},
		"the beginning of some flags":       {"--istiod-…", ""},
		"a command of the plugin":           {program + " lint --help", ""},
		"tests of a package of the lab":     {"MESH_CHAOS_SEEDS=20 go test -run Outlives ./mesh", ""},
		"tests of some package":             {"go test … -run TestACommand", ""},
		"a part of a command":               {"go run", ""},
		"a verb with a file of the reader":  {"kubectl apply -f x.yaml", ""},
		"a folder":                          {"examples/", ""},
		"files by a pattern that are there": {"examples/*/rollout.yaml", ""},
		"packages that are there":           {"./pkg/...", ""},
		"a picture":                         {"images/incident.svg", ""},
		"what is built":                     {"bin/" + program, ""},
		"what is built for the lab":         {"e2e/.bin/x", ""},
		"a name that looks like a path":     {"argoproj-labs/istio", ""},
		"what a program prints":             {"4/10 (scaled to 6)", ""},
	} {
		wantFaults(t, name, know.inlineFaults(markdown.Code{At: "docs/p.md:1", Text: tc.code}), tc.want)
	}
	theirs := markdown.Code{At: ofOthers + ":1", Text: "pkg/validation/spec/LICENSE"}
	wantFaults(t, "a file of another module", know.inlineFaults(theirs), "")
}
