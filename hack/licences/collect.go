package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are those of .goreleaser.yaml.
var platforms = []struct{ os, arch string }{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// textName is what files with licence texts are called.
var textName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([-.].*)?$`)

// noticeName is what files are called that Apache-2.0 wants passed on beside its text.
var noticeName = regexp.MustCompile(`(?i)^notice([-.].*)?$`)

// text is one file of licence text in a module, or a notice.
type text struct {
	module, version string
	// file is its path in the module, with slashes; "" where a module has none.
	file string
	// licences are SPDX names, in order and none twice; empty where it is not recognised.
	licences []string
	content  []byte
	// unlisted is what is passed on and not judged: notices, and Go's own licence, which
	// the page names in its first lines.
	unlisted bool
}

// pkg is one package of a binary, and the module that it is of.
type pkg struct{ module, version, moduleDir, dir string }

// collect finds the texts that cover the packages of the plugin on any platform, by module
// and file.
func collect(ctx context.Context, root string) ([]text, error) {
	found := map[string]text{}
	for _, platform := range platforms {
		packages, err := packagesOf(ctx, root, platform.os, platform.arch)
		if err != nil {
			return nil, fmt.Errorf("packages for %s/%s: %w", platform.os, platform.arch, err)
		}
		for _, p := range packages {
			files, err := covering(p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.module, err)
			}
			for _, file := range files {
				found[p.module+" "+file] = text{module: p.module, version: p.version, file: file}
			}
			if err := classifyAll(found, p, files); err != nil {
				return nil, err
			}
			if err := addNotices(found, p); err != nil {
				return nil, fmt.Errorf("%s: %w", p.module, err)
			}
		}
	}
	own, err := goLicence(ctx)
	if err != nil {
		return nil, err
	}
	texts := []text{own}
	for _, one := range found {
		texts = append(texts, one)
	}
	slices.SortFunc(texts, func(a, b text) int { return cmp.Or(cmp.Compare(a.module, b.module), cmp.Compare(a.file, b.file)) })
	return texts, nil
}

// packagesOf asks the go command, which knows the build constraints.
func packagesOf(ctx context.Context, root, goos, goarch string) ([]pkg, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Version}}{{"\t"}}{{.Dir}}{{"\t"}}{{$.Dir}}{{end}}{{end}}`
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-f", format, "./plugin")
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOWORK=off")
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, said.Bytes())
	}
	var packages []pkg
	for line := range strings.Lines(string(out)) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 4 {
			packages = append(packages, pkg{fields[0], fields[1], fields[2], fields[3]})
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("go list names no package of another module in %s", root)
	}
	return packages, nil
}

// addNotices finds the notices that cover a package.
func addNotices(found map[string]text, p pkg) error {
	files, err := between(p, noticeName)
	if err != nil {
		return err
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(p.moduleDir, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		found[p.module+" "+file] = text{module: p.module, version: p.version, file: file, content: content, unlisted: true}
	}
	return nil
}

// goLicence is that of the standard library, which is in every binary.
func goLicence(ctx context.Context) (text, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return text{}, fmt.Errorf("go env: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	content, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	return text{module: "Go and its standard library", version: version, file: "LICENSE", content: content, unlisted: true}, err
}

// covering are the texts that cover a package; "" where there are none.
func covering(p pkg) ([]string, error) {
	files, err := between(p, textName)
	if err == nil && len(files) == 0 {
		files = []string{""}
	}
	return files, err
}

// between finds files in the module's own folder and those from there to the package:
// code that was taken over from others lies beside its licence.
func between(p pkg, name *regexp.Regexp) ([]string, error) {
	var files []string
	for dir := p.dir; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && name.MatchString(entry.Name()) && !strings.HasSuffix(entry.Name(), ".go") {
				file, err := filepath.Rel(p.moduleDir, filepath.Join(dir, entry.Name()))
				if err != nil {
					return nil, err
				}
				files = append(files, filepath.ToSlash(file))
			}
		}
		if dir == p.moduleDir {
			break
		}
		if !strings.HasPrefix(dir, p.moduleDir) {
			return nil, fmt.Errorf("package folder %s is not in %s", p.dir, p.moduleDir)
		}
	}
	return files, nil
}
