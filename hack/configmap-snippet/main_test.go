package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const amd64, arm64 = "rollouts-plugin-trafficrouter-istio-linux-amd64", "rollouts-plugin-trafficrouter-istio-linux-arm64"

// entry is what the controller reads of a registered plugin.
type entry struct {
	Name     string `json:"name"`
	Location string `json:"location"`
	Sha256   string `json:"sha256"`
}

// registered reads the ConfigMap as the controller does.
func registered(t *testing.T, file string) []entry {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
		Data             map[string]string
	}
	if err := yaml.UnmarshalStrict(raw, &object); err != nil {
		t.Fatal(err)
	}
	if object.APIVersion != "v1" || object.Kind != "ConfigMap" || object.Metadata.Name != "argo-rollouts-config" || object.Metadata.Namespace != "argo-rollouts" {
		t.Errorf("not the controller's ConfigMap: %+v", object)
	}
	var plugins []entry
	if err := yaml.UnmarshalStrict([]byte(object.Data["trafficRouterPlugins"]), &plugins); err != nil {
		t.Fatal(err)
	}
	return plugins
}

func TestSnippetHasTheAddressAndTheSumOfItsBinary(t *testing.T) {
	dir := t.TempDir()
	var list strings.Builder
	sums := map[string]string{}
	for _, name := range []string{arm64, amd64, amd64 + ".sbom"} {
		sums[name] = fmt.Sprintf("%x", sha256.Sum256([]byte("the bytes of "+name)))
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	checksums := filepath.Join(dir, "checksums.txt")
	if err := os.WriteFile(checksums, []byte(list.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, binary := range []string{amd64, arm64} {
		output := filepath.Join(dir, binary+".yaml")
		if err := run([]string{"--checksums", checksums, "--binary", binary, "--version", "v1.2.3", "--output", output}, io.Discard); err != nil {
			t.Fatal(err)
		}
		want := []entry{{
			Name:     "argoproj-labs/istio",
			Location: "https://github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/releases/download/v1.2.3/" + binary,
			Sha256:   sums[binary],
		}}
		if diff := cmp.Diff(want, registered(t, output)); diff != "" {
			t.Errorf("registered for %s (-want +got):\n%s", binary, diff)
		}
	}
}

// The example shows what the release writes; only what a release knows is open in it.
func TestExampleIsASnippetWithoutItsValues(t *testing.T) {
	example := registered(t, filepath.Join("..", "..", "examples", "install", "argo-rollouts-config.yaml"))
	want := []entry{{
		Name:     "argoproj-labs/istio",
		Location: "https://github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/releases/download/VERSION/" + amd64,
		Sha256:   "WRITTEN-BY-THE-RELEASE",
	}}
	if diff := cmp.Diff(want, example); diff != "" {
		t.Errorf("the example (-want +got):\n%s", diff)
	}
}

func TestSumOf(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	tests := map[string]struct{ list, want, err string }{
		"the binary's own line among others":   {"aa  other\n" + sum + "  " + amd64 + "\n", sum, ""},
		"a line as sha256sum -b writes it":     {sum + " *" + amd64 + "\r\n", sum, ""},
		"a name that only begins alike":        {sum + "  " + amd64 + ".sig\n", "", amd64 + " is not listed"},
		"an empty list":                        {"", "", amd64 + " is not listed"},
		"a sum that is cut short":              {sum[:40] + "  " + amd64, "", "not 64 hex digits"},
		"a sum in capitals, as no Go tool has": {strings.ToUpper(sum) + "  " + amd64, "", "not 64 hex digits"},
		"the same name twice":                  {sum + "  " + amd64 + "\n" + sum + "  " + amd64, "", amd64 + " is listed twice"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sumOf(tc.list, amd64)
			if got != tc.want {
				t.Errorf("sum %q, want %q", got, tc.want)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestFaultyCallsWriteNothing(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "checksums.txt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(dir, "out.yaml")
	tests := map[string]struct {
		args []string
		want string
	}{
		"no flags":              {nil, "give --checksums, --binary, --version and --output"},
		"no version":            {[]string{"--checksums", empty, "--binary", amd64, "--output", output}, "give --checksums"},
		"an unknown flag":       {[]string{"--sum", "1"}, "flag provided but not defined"},
		"no checksums file":     {[]string{"--checksums", filepath.Join(dir, "none"), "--binary", amd64, "--version", "v1.2.3", "--output", output}, "no such file"},
		"a binary not in there": {[]string{"--checksums", empty, "--binary", amd64, "--version", "v1.2.3", "--output", output}, "checksums.txt: " + amd64 + " is not listed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(tc.args, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(output); !os.IsNotExist(err) {
				t.Errorf("a file was written: %v", err)
			}
		})
	}
}
