package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"sigs.k8s.io/yaml"
)

// configuration is what .goreleaser.yaml says about names and flags.
type configuration struct {
	ProjectName string `json:"project_name"`
	Builds      []struct {
		Binary              string
		Goos, Goarch        []string
		Env, Flags, Ldflags []string
		NoUniqueDistDir     bool `json:"no_unique_dist_dir"`
	}
	Archives []struct {
		Formats      []string
		NameTemplate string `json:"name_template"`
	}
	Sboms []struct {
		Artifacts string
		Documents []string
		Args      []string
	}
	Checksum struct {
		NameTemplate string `json:"name_template"`
	}
	Signs []struct {
		Artifacts, Signature string
		Args                 []string
	}
}

func readConfiguration(t *testing.T) configuration {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c configuration
	if err := yaml.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Builds) != 1 || len(c.Archives) != 1 || len(c.Sboms) != 2 || len(c.Signs) != 1 {
		t.Fatalf("one build, archive and signature, an SBOM and the licences are expected: %+v", c)
	}
	return c
}

// fill makes a name of its template, as the release does.
func fill(t *testing.T, name string, fields map[string]string) string {
	t.Helper()
	parsed, err := template.New("name").Option("missingkey=error").Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, fields); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// released are the names of all files of a release, and those of its binaries.
func released(t *testing.T, c configuration) (files, binaries []string) {
	t.Helper()
	build := c.Builds[0]
	for _, goos := range build.Goos {
		for _, goarch := range build.Goarch {
			fields := map[string]string{"ProjectName": c.ProjectName, "Os": goos, "Arch": goarch}
			binary := fill(t, c.Archives[0].NameTemplate, fields)
			if built := fill(t, build.Binary, fields); built != binary {
				t.Errorf("the file in dist/ is %s, the released one %s: checksums.txt could not be checked there", built, binary)
			}
			fields["ArtifactName"] = binary
			binaries = append(binaries, binary)
			files = append(files, binary, fill(t, c.Sboms[0].Documents[0], fields), fill(t, c.Signs[0].Signature, fields))
		}
	}
	files = append(files, c.Sboms[1].Documents...)
	return append(files, c.Checksum.NameTemplate), binaries
}

func TestTheReleaseHasABinaryAnSBOMAndASnippetForEachPlatform(t *testing.T) {
	c := readConfiguration(t)
	if c.ProjectName != "rollouts-plugin-trafficrouter-istio" || !slices.Equal(c.Archives[0].Formats, []string{"binary"}) ||
		c.Sboms[0].Artifacts != "binary" || c.Sboms[1].Artifacts != "any" || c.Signs[0].Artifacts != "binary" || !c.Builds[0].NoUniqueDistDir {
		t.Errorf("%+v", c)
	}
	files, _ := released(t, c)
	want := []string{"checksums.txt", "LICENCES.txt"}
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		binary := "rollouts-plugin-trafficrouter-istio-" + platform
		want = append(want, binary, binary+".cdx.json", "argo-rollouts-config-"+platform+".yaml")
	}
	slices.Sort(want)
	slices.Sort(files)
	if !slices.Equal(files, want) {
		t.Errorf("files %v\nwant  %v", files, want)
	}
}

func TestTheReleaseGivesThisProgramWhatItNeeds(t *testing.T) {
	given := strings.Join(readConfiguration(t).Signs[0].Args, " ")
	for _, part := range []string{"run ./hack/configmap-snippet", "--checksums=dist/checksums.txt", "--binary=${artifactName}", "--version=", "--output=${signature}"} {
		if !strings.Contains(given, part) {
			t.Errorf("the release's call lacks %s: %s", part, given)
		}
	}
}

// What people read and apply has the names that the release gives.
func TestExamplesAndDocumentationNameOnlyReleasedFiles(t *testing.T) {
	files, binaries := released(t, readConfiguration(t))
	named := regexp.MustCompile(`(?:rollouts-plugin-trafficrouter-istio|argo-rollouts-config)-(?:linux|darwin|windows)-\w+(?:[.]\w+)*`)
	seen := map[string]bool{}
	for _, folder := range []string{"examples", "docs", "README.md"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) == ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range named.FindAllString(string(text), -1) {
				if seen[name] = true; !slices.Contains(files, name) {
					t.Errorf("%s names %s, which no release has", path, name)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !seen[binaries[0]] {
		t.Errorf("nobody names %s: %v", binaries[0], seen)
	}
}

// hack/rebuild.sh and the commands in docs/release.md prove nothing with other
// flags than the release's.
func TestARebuildHasTheFlagsOfTheRelease(t *testing.T) {
	build := readConfiguration(t).Builds[0]
	linker := regexp.MustCompile(`{{[^}]*}}`).Split(strings.Join(build.Ldflags, " "), -1)
	for _, file := range []string{filepath.Join("..", "rebuild.sh"), filepath.Join("..", "..", "docs", "release.md")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range slices.Concat(build.Env, []string{strings.Join(build.Flags, " ")}, linker) {
			if want = strings.TrimSuffix(want, "v"); !strings.Contains(string(text), strings.TrimSpace(want)) {
				t.Errorf("%s lacks %q", file, want)
			}
		}
	}
}
