package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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
			for _, fault := range know.inlineFaults(code.Text) {
				t.Errorf("%s: %s", code.At, fault)
			}
		}
	}
}

// foreign are programs that pages may call and that are not of this repository.
var foreign = strings.Fields("awk base64 cat chmod cosign cp curl docker echo export git grep gh head helm jq kubectl kustomize ln mkdir mv openssl sed sha256sum sort tar tee unzip")

// foreignFlags are flags in running text that belong to other programs.
var foreignFlags = strings.Fields("--context --patch-file --field-selector --show-managed-fields --previous --server-side --force-conflicts --dry-run " +
	"--namespaced --instance-id --qps --burst") // the controller's

// knowledge is what commands may name.
type knowledge struct {
	targets map[string]bool   // of the Makefile
	help    map[string]string // of the plugin, by subcommand; "" is its own
	flags   string            // every text in which a flag of this repository is defined
}

const program = "rollouts-plugin-trafficrouter-istio"

// known builds the plugin and asks it.
var known = func() func(t *testing.T) knowledge {
	gather := sync.OnceValues(gather)
	return func(t *testing.T) knowledge {
		t.Helper()
		k, err := gather()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}()

func gather() (knowledge, error) {
	k := knowledge{targets: map[string]bool{}, help: map[string]string{}}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		return k, err
	}
	for _, found := range regexp.MustCompile(`(?m)^([\w-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		k.targets[found[1]] = true
	}
	folder, err := os.MkdirTemp("", "docs")
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(folder)
	plugin := filepath.Join(folder, program)
	build := exec.Command("go", "build", "-o", plugin, "../plugin")
	if out, err := build.CombinedOutput(); err != nil {
		return k, fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	if k.help[""], err = help(plugin, "--help"); err != nil {
		return k, err
	}
	for _, found := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(k.help[""], -1) {
		if k.help[found[1]], err = help(plugin, found[1], "--help"); err != nil {
			return k, err
		}
	}
	for _, text := range k.help {
		k.flags += text
	}
	sources, err := filepath.Glob("../e2e/cmd/*/*.go")
	if err != nil {
		return k, err
	}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			return k, err
		}
		for _, found := range regexp.MustCompile(`(?:Var\w*\([^"\n]*|\b(?:String|Bool|Int|Float|Duration)\w*\()"([\w-]+)"`).FindAllStringSubmatch(string(content), -1) {
			k.flags += " --" + found[1] + " "
		}
	}
	return k, nil
}

func help(plugin string, args ...string) (string, error) {
	out, err := exec.Command(plugin, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// faults is what a block of commands names and what is not there.
func (k knowledge) faults(f markdown.Fence) []string {
	page, _, _ := strings.Cut(f.At, ":")
	folders := []string{"..", filepath.Join("..", filepath.Dir(page))}
	var faults []string
	for _, words := range markdown.Commands(f.Body) {
		if words[0] == "cd" && len(words) == 2 {
			folders = append(folders, filepath.Join("..", words[1]))
		}
		faults = append(faults, k.faultsOf(words)...)
		if f.Kind != markdown.Fragment {
			faults = append(faults, missing(words, folders)...)
		}
	}
	return faults
}

// faultsOf looks at one command.
func (k knowledge) faultsOf(words []string) []string {
	switch name := filepath.Base(words[0]); {
	case name == "make":
		return k.madeUp(words[1:])
	case name == program:
		return k.pluginFaults(words[1:])
	case name == "kubectl" && len(words) > 1 && words[1] == "argo-rollouts-istio":
		return k.pluginFaults(words[2:])
	case name == "kubectl" || name == "go" || name == "cd" || slices.Contains(foreign, name):
		return nil
	case strings.HasPrefix(words[0], "hack/"):
		return missing([]string{"-f", words[0]}, []string{".."})
	default:
		return []string{fmt.Sprintf("%s: no such program is known here; is it a typing error? Else add it to the list foreign in docs/commands_test.go", words[0])}
	}
}

// madeUp are the targets that the Makefile does not have.
func (k knowledge) madeUp(words []string) []string {
	var faults []string
	for _, word := range words {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !k.targets[word] {
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

// fileFlags are followed by the name of a file or folder.
var fileFlags = []string{"-f", "-k", "--filename", "--patch-file", "--kustomize", "--values"}

// missing are the files that a command names and none of the folders has.
func missing(words, folders []string) []string {
	var faults []string
	for i, word := range words {
		flag, file, joined := strings.Cut(word, "=")
		if !slices.Contains(fileFlags, flag) {
			continue
		}
		if !joined && i+1 < len(words) {
			file = words[i+1]
		}
		if file == "-" || strings.Contains(file, "://") {
			continue
		}
		if !slices.ContainsFunc(folders, func(folder string) bool {
			_, err := os.Stat(filepath.Join(folder, file))
			return err == nil
		}) {
			faults = append(faults, fmt.Sprintf("%s %s: no such file beside the page or in the repository's root. "+
				"If it is the reader's own, put <!-- fragment: why --> above the fence", flag, file))
		}
	}
	return faults
}

var inlineMake = regexp.MustCompile(`^make( [a-z][\w-]*)+$`)

// inlineFaults looks at a piece of code in running text: a make target, or a flag.
func (k knowledge) inlineFaults(code string) []string {
	switch {
	case inlineMake.MatchString(code):
		return k.madeUp(strings.Fields(code)[1:])
	case strings.HasPrefix(code, program+" "):
		return k.pluginFaults(strings.Fields(code)[1:])
	case strings.HasPrefix(code, "--") && len(code) > 3 && !strings.Contains(code, "…"):
		flag, _, _ := strings.Cut(strings.Fields(code)[0], "=")
		if !defines(k.flags, flag) && !slices.Contains(foreignFlags, flag) {
			return []string{fmt.Sprintf("%s: neither the plugin nor a command in e2e/cmd has such a flag. "+
				"If it is another program's, add it to the list foreignFlags in docs/commands_test.go", flag)}
		}
	}
	return nil
}

func TestACommandThatCallsWhatIsNotThereIsFound(t *testing.T) {
	know := known(t)
	for text, want := range map[string]string{
		"make biuld":                                 "no such target",
		"mkae build":                                 "no such program",
		"bin/" + program + " lnit":                   "no such command",
		program + " lint --fiel x":                   "no such flag",
		"kubectl argo-rollouts-istio lint --no-flag": "no such flag",
		"kubectl apply -f nowhere.yaml":              "no such file",
		"hack/nothing.sh":                            "no such file",
	} {
		f := markdown.Fence{At: "README.md:1", Language: "sh", Body: text}
		if faults := strings.Join(know.faults(f), "\n"); !strings.Contains(faults, want) {
			t.Errorf("%s: faults are %q, want %q among them", text, faults, want)
		}
	}
	for _, text := range []string{
		"make build && bin/" + program + " lint -f examples/subset-level", "kubectl apply -f https://example.com/x.yaml",
		"kubectl -n shop get x | kubectl argo-rollouts-istio lint -f -", "cd e2e && go run ./cmd/lab build",
	} {
		f := markdown.Fence{At: "README.md:1", Language: "sh", Body: text}
		if faults := know.faults(f); len(faults) > 0 {
			t.Errorf("%s: faults are %q", text, faults)
		}
	}
	for code, good := range map[string]bool{
		"make demo": true, "make nothing": false, "--allow-cross-namespace=edge": true, "--alow-cross-namespace": false,
		program + " lint --help": true, program + " lint --hlep": false,
	} {
		if faults := know.inlineFaults(code); (len(faults) == 0) != good {
			t.Errorf("%s: faults are %q", code, faults)
		}
	}
}
