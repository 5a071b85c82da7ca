package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// knowledge is what commands may name. Folders are paths from this one.
type knowledge struct {
	targets   map[string]bool     // of the Makefile
	variables map[string]bool     // that the Makefile uses
	help      map[string]string   // of the plugin, by subcommand; "" is its own
	flags     string              // every text in which a flag of this repository is defined
	tests     map[string][]string // names of tests, fuzz targets and benchmarks, by folder
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

func gather() (k knowledge, err error) {
	for _, part := range []func(*knowledge) error{readMakefile, readTests, askPlugin, readPrograms} {
		if err := part(&k); err != nil {
			return k, err
		}
	}
	return k, nil
}

func readMakefile(k *knowledge) error {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		return err
	}
	k.targets, k.variables = map[string]bool{}, map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([\w-]+):`).FindAllSubmatch(makefile, -1) {
		k.targets[string(found[1])] = true
	}
	for _, found := range regexp.MustCompile(`\$\((\w+)\)`).FindAllSubmatch(makefile, -1) {
		k.variables[string(found[1])] = true
	}
	return nil
}

func readTests(k *knowledge) error {
	files, err := filesBelow("..", "_test.go")
	if err != nil {
		return err
	}
	k.tests = map[string][]string{}
	for path, body := range files {
		folder := filepath.Dir(path)
		k.tests[folder] = append(k.tests[folder], testsOf(body)...)
	}
	return nil
}

// testsOf are the names of the functions of a file that `go test` can run.
func testsOf(body string) []string {
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`).FindAllStringSubmatch(body, -1) {
		names = append(names, found[1])
	}
	return names
}

func askPlugin(k *knowledge) error {
	folder, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	plugin := filepath.Join(folder, program)
	if out, err := exec.Command("go", "build", "-o", plugin, "../plugin").CombinedOutput(); err != nil {
		return fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	own, err := help(plugin, "--help")
	if err != nil {
		return err
	}
	k.help = map[string]string{"": own}
	for _, found := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(own, -1) {
		if k.help[found[1]], err = help(plugin, found[1], "--help"); err != nil {
			return err
		}
	}
	for _, text := range k.help {
		k.flags += text
	}
	return nil
}

func help(plugin string, args ...string) (string, error) {
	out, err := exec.Command(plugin, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

func readPrograms(k *knowledge) error {
	folders, err := filepath.Glob("../e2e/cmd/*")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		flags, err := flagsIn(folder)
		if err != nil {
			return err
		}
		k.flags += flags
	}
	return nil
}

// definedFlag is where a program makes a flag, with its name and its letter.
var definedFlag = regexp.MustCompile(`(?:Var\w*\([^"\n]*|\b(?:String|Bool|Int|Float|Duration)\w*\()"([\w-]+)"(?:, "(\w)")?`)

// flagsIn are the flags of the program whose sources are in a folder, with spaces
// around each. They are read and not asked for: to build these programs takes minutes.
func flagsIn(folder string) (string, error) {
	sources, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	flags, isProgram := " --help -h ", false
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		isProgram = isProgram || strings.Contains("\n"+string(content), "\npackage main\n")
		for _, found := range definedFlag.FindAllStringSubmatch(string(content), -1) {
			flags += "--" + found[1] + " "
			if found[2] != "" {
				flags += "-" + found[2] + " "
			}
		}
	}
	if !isProgram {
		return "", fmt.Errorf("%s holds no program", strings.TrimPrefix(folder, "../"))
	}
	return flags, nil
}

// filesBelow returns the files below a folder with one of the endings, by path,
// without what is built or downloaded.
func filesBelow(folder string, endings ...string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && len(name) > 2 && name[0] == '.' {
			return fs.SkipDir
		}
		for _, ending := range endings {
			if !entry.IsDir() && strings.HasSuffix(path, ending) {
				body, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				files[path] = string(body)
			}
		}
		return nil
	})
	return files, err
}
