package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
)

// modulePath is the module this package belongs to; its go.mod marks the
// folder that components and built binaries are found from.
const modulePath = "github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e"

// Dir returns the folder of the e2e module. It is searched upwards from the
// working directory, where each folder and its "e2e" are tried, so that tests,
// `go run` and a command started in the repository's root all find it.
func Dir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		for _, candidate := range []string{dir, filepath.Join(dir, "e2e")} {
			if isModule(candidate) {
				return candidate, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of %s in %s or above it: run inside the repository", modulePath, start)
		}
	}
}

func isModule(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && modfile.ModulePath(content) == modulePath
}

// requiredVersion reads which version of a module the go.mod in dir requires.
func requiredVersion(dir, module string) (string, error) {
	name := filepath.Join(dir, "go.mod")
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	file, err := modfile.ParseLax(name, content, nil)
	if err != nil {
		return "", err
	}
	for _, r := range file.Require {
		if r.Mod.Path == module {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", name, module)
}

// moduleFolders remembers answers of the go command, which takes a tenth of a
// second for each.
var moduleFolders sync.Map

// moduleFolder returns where the source of module@version lies, downloading it
// when the module cache lacks it. The go command runs in dir, whose go.sum has
// the checksum. Naming the version keeps the go command from loading that
// module's whole graph, which may not be in the cache.
func moduleFolder(ctx context.Context, dir, module, version string) (string, error) {
	query := module + "@" + version
	if found, ok := moduleFolders.Load(query); ok {
		return found.(string), nil
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", query)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	answer := struct{ Dir, Error string }{}
	if jsonErr := json.Unmarshal(out, &answer); err == nil {
		err = jsonErr
	}
	if err != nil || answer.Error != "" {
		return "", fmt.Errorf("source of %s: %w %s%s", query, err, answer.Error, stderrOf(err))
	}
	moduleFolders.Store(query, answer.Dir)
	return answer.Dir, nil
}

func stderrOf(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return strings.TrimSpace(string(bytes.TrimSpace(exit.Stderr)))
	}
	return ""
}
