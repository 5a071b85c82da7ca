package lab

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/semver"
)

// fake is a component of a module made up by fakeTree.
var fake = Component{binary: "fake", folder: "fake", key: "fake", module: "example.com/fake", pkg: "example.com/fake",
	stamp: func(version string) string { return "-X main.version=" + version }}

// fakeTree makes a folder that looks like this module to [Dir], with a
// component whose main package has the body given, and works in it.
func fakeTree(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "components", "fake", "source")
	if err := os.MkdirAll(source, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"go.mod":                         "module " + modulePath + "\n",
		"components/fake/go.mod":         "module lab/fake\n\ngo 1.26\n\nrequire example.com/fake v1.2.3\n\nreplace example.com/fake => ./source\n",
		"components/fake/source/go.mod":  "module example.com/fake\n\ngo 1.26\n",
		"components/fake/source/fake.go": "package main\n\nvar version string\n\nfunc main() { " + body + " }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestBuildMakesWhatIsMissingUnderItsVersionAndSaysSo(t *testing.T) {
	dir := fakeTree(t, "print(version)")
	progress := &bytes.Buffer{}
	if err := Build(t.Context(), progress, fake); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".bin", "fake-v1.2.3", "fake")
	if out, err := exec.Command(path).CombinedOutput(); err != nil || string(out) != "v1.2.3" {
		t.Errorf("%s prints %q, %v, want its version", path, out, err)
	}
	if !contains(progress.String(), "lab: fake v1.2.3 (1 of 1): building\n", "done after") {
		t.Errorf("progress:\n%s", progress)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".bin", "fake-v1.2.3", "*.tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	progress.Reset()
	if err := Build(t.Context(), progress, fake); err != nil || progress.Len() > 0 {
		t.Errorf("second build: %v, progress %q, want nothing", err, progress)
	}
}

func TestANewVersionInGoModIsBuiltBesideTheOldOne(t *testing.T) {
	dir := fakeTree(t, "print(version)")
	if err := Build(t.Context(), nil, fake); err != nil {
		t.Fatal(err)
	}
	mod := filepath.Join(dir, "components", "fake", "go.mod")
	content, err := os.ReadFile(mod)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mod, bytes.ReplaceAll(content, []byte("v1.2.3"), []byte("v1.3.0")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), nil, fake); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1.2.3", "v1.3.0"} {
		if path := filepath.Join(dir, ".bin", "fake-"+version, "fake"); !exists(path) {
			t.Errorf("%s is missing", path)
		}
	}
}

func TestAFailedBuildNamesTheComponentAndTheCompilersWords(t *testing.T) {
	dir := fakeTree(t, "undefinedThing()")
	err := Build(t.Context(), nil, fake)
	if err == nil || !contains(err.Error(), "build fake v1.2.3", "undefined: undefinedThing") {
		t.Errorf("error: %v", err)
	}
	if path := filepath.Join(dir, ".bin", "fake-v1.2.3", "fake"); exists(path) {
		t.Errorf("%s exists after a failed build", path)
	}
}

func TestBuildsOfOneComponentAtOnceCompileItOnce(t *testing.T) {
	fakeTree(t, "print(version)")
	outputs := make([]bytes.Buffer, 4)
	var group sync.WaitGroup
	for i := range outputs {
		group.Go(func() {
			if err := Build(t.Context(), &outputs[i], fake); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	compiled := 0
	for i := range outputs {
		compiled += strings.Count(outputs[i].String(), ": building\n")
	}
	if compiled != 1 {
		t.Errorf("compiled %d times, want once", compiled)
	}
}

func TestABuildThatWaitsForAnotherSaysSoAndEndsWithItsContext(t *testing.T) {
	dir := fakeTree(t, "print(version)")
	unlock, err := lockFolder(t.Context(), filepath.Join(dir, ".bin", "fake-v1.2.3"), &report{})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	progress := &bytes.Buffer{}
	err = Build(ctx, progress, fake)
	if err == nil || !contains(err.Error(), "build fake v1.2.3", context.DeadlineExceeded.Error()) {
		t.Errorf("error: %v", err)
	}
	if got := strings.Count(progress.String(), "another process is building here"); got != 1 {
		t.Errorf("said %d times that it waits, want once:\n%s", got, progress)
	}
}

func TestAssetsOfEnvtestTakeThePlaceOfABuild(t *testing.T) {
	dir := fakeTree(t, "print(version)")
	t.Setenv(assetsVariable, dir)
	asset := fake
	asset.asset = true
	err := Build(t.Context(), nil, asset)
	if err == nil || !contains(err.Error(), "no fake in KUBEBUILDER_ASSETS="+dir, "setup-envtest") {
		t.Errorf("without the file: %v", err)
	}
	want := filepath.Join(dir, "fake")
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Build(t.Context(), nil, asset); err != nil {
		t.Errorf("with the file: %v", err)
	}
	if got, err := asset.Path(); got != want || err != nil {
		t.Errorf("path %s, %v, want %s", got, err, want)
	}
}

func TestComponentsListTheControlPlaneFirstAndTheTestedControllersWithTheirVersions(t *testing.T) {
	all := Components()
	var releases, others []string
	for i, c := range all {
		version, err := c.Version()
		if err != nil {
			t.Fatal(err)
		}
		if i < len(ControlPlane()) {
			continue
		}
		if c.key != "rollouts" {
			others = append(others, c.folder)
			continue
		}
		if len(others) > 0 {
			t.Errorf("%v come before a controller, which more tests need", others)
		}
		releases = append(releases, version)
		if c.folder != "rollouts-"+version {
			t.Errorf("components/%s builds %s", c.folder, version)
		}
	}
	if !slices.Equal(releases, TestedReleases()) {
		t.Errorf("releases of the controller: %v, want %v", releases, TestedReleases())
	}
	if !slices.Contains(others, "istiod") {
		t.Errorf("istiod is not among %v", others)
	}
}

func TestReleasesAreTheFoldersOldestFirstAndHoldTheTestedOnes(t *testing.T) {
	releases, err := Releases()
	if err != nil {
		t.Fatal(err)
	}
	if !semver.IsValid(releases[0]) || !slices.IsSortedFunc(releases, semver.Compare) {
		t.Errorf("releases %v", releases)
	}
	for i, tested := range TestedReleases() {
		if !slices.Contains(releases, tested) {
			t.Errorf("%s is tested, but there are only %v", tested, releases)
		}
		if i == 0 && tested != releases[0] {
			t.Errorf("%s is older than the oldest that is tested, %s", releases[0], tested)
		}
	}
	for _, release := range releases {
		if version, err := Rollouts(release).Version(); version != release || err != nil {
			t.Errorf("components/rollouts-%s builds %q, %v", release, version, err)
		}
	}
}

func TestStampKubernetesNamesVersionMajorAndMinor(t *testing.T) {
	got := stampKubernetes("v1.36.3")
	for _, want := range []string{"gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"} {
		if !strings.Contains(got+" ", "."+want+" ") {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}
