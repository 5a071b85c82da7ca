package main

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var someSum = strings.Repeat("0123456789abcdef", 4)

// call is one of this program with all that it needs, in a folder of its own; further flags replace the earlier ones.
type call struct {
	checksums, output string
}

func newCall(t *testing.T, binaries ...string) call {
	t.Helper()
	dir := t.TempDir()
	c := call{filepath.Join(dir, "checksums.txt"), filepath.Join(dir, "out.yaml")}
	c.list(t, binaries...)
	return c
}

// list gives every binary the same sum.
func (c call) list(t interface{ Fatal(...any) }, binaries ...string) {
	var lines strings.Builder
	for _, name := range binaries {
		fmt.Fprintf(&lines, "%s  %s\n", someSum, name)
	}
	if err := os.WriteFile(c.checksums, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c call) run(flags ...string) error {
	return run(append([]string{"--checksums", c.checksums, "--binary", amd64, "--version", "v1.2.3", "--output", c.output}, flags...), io.Discard)
}

func TestWhatTheControllerCannotUseIsRefusedWithTheFlagAndTheRemedy(t *testing.T) {
	const tag, word, folder, file = "give the release's tag with its v", "give two words with one slash between them", "give the folder of the releases as https://host/path", "give the binary's name in the checksums file"
	for sentence, tc := range map[string]struct{ flag, value, remedy string }{
		"a version with a space":                              {"version", "v1.2.3 foo", tag},
		"a version that would begin a comment":                {"version", "v1 #x", tag},
		"a version with a line break":                         {"version", "v1.2.3\n    - name: other/one", tag},
		"a version with a line break at its end":              {"version", "v1.2.3\n", tag},
		"a version without its v, which no address has":       {"version", "1.2.3", tag},
		"a version of one number, which makes no release":     {"version", "v1", tag},
		"a version that leaves its folder":                    {"version", "v1.2.3-x/../..", tag},
		"an empty name":                                       {"name", "", word},
		"a name without a slash":                              {"name", "istio", word},
		"a name with two slashes":                             {"name", "argoproj-labs/istio/v2", word},
		"a name with nothing before its slash":                {"name", "/istio", word},
		"a name with nothing behind its slash":                {"name", "argoproj-labs/", word},
		"a name with a space":                                 {"name", "argoproj-labs/is tio", word},
		"a name that would begin a comment":                   {"name", "argoproj-labs/istio #x", word},
		"a name that is the folder above":                     {"name", "argoproj-labs/..", word},
		"a name with a dot where the controller has none":     {"name", "argo.proj/istio", word},
		"an empty address":                                    {"address", "", folder},
		"an address without a scheme":                         {"address", "example.org/releases", folder},
		"an address of another scheme":                        {"address", "ftp://example.org/releases", folder},
		"an address of an image":                              {"address", "oci://example.org/releases", folder},
		"an address with a space in its host":                 {"address", "https://ex ample", folder},
		"an address with a space in its path":                 {"address", "https://example.org/a b", folder},
		"an address with a line break":                        {"address", "https://example.org/\n", folder},
		"an address without a host":                           {"address", "https:///releases", folder},
		"an address with no more than a port":                 {"address", "https://:443/releases", folder},
		"an address with a port that is no number":            {"address", "https://example.org:https/releases", folder},
		"an address with a query, which would eat the binary": {"address", "https://example.org/?f=", folder},
		"an address with a fragment":                          {"address", "https://example.org/#releases", folder},
		"a file's address with two slashes":                   {"address", "file://releases", folder},
		"a file's address that is no folder":                  {"address", "file:///", folder},
		"a binary in another folder":                          {"binary", "../" + amd64, file},
		"a binary whose name would begin a fragment":          {"binary", amd64 + "#1", file},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCall(t, amd64, "../"+amd64, amd64+"#1")
			if err := os.WriteFile(c.output, []byte("of an earlier call"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := c.run("--" + tc.flag + "=" + tc.value)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("--%s %q: %s", tc.flag, tc.value, tc.remedy)) {
				t.Errorf("error %v, want --%s %q: %s", err, tc.flag, tc.value, tc.remedy)
			}
			if left, err := os.ReadFile(c.output); err != nil || string(left) != "of an earlier call" {
				t.Errorf("something was written: %q, %v", left, err)
			}
		})
	}
}

func TestAllFaultsAreToldAtOnceAndArgumentsAreNone(t *testing.T) {
	c := newCall(t, amd64)
	err := c.run("--version=1", "--name=x", "--address=y")
	for _, flag := range []string{"--version", "--name", "--address"} {
		if err == nil || !strings.Contains(err.Error(), flag+" ") {
			t.Errorf("%s is not named: %v", flag, err)
		}
	}
	if err := c.run("v1.2.4", "more"); err == nil || !strings.Contains(err.Error(), `unknown argument ["v1.2.4" "more"]: there are only flags`) {
		t.Errorf("arguments: %v", err)
	}
	if _, err := os.Stat(c.output); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
}

func TestWhatTheControllerCanUseIsWritten(t *testing.T) {
	const released = "https://github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/releases/download/v1.2.3/"
	for sentence, tc := range map[string]struct {
		flag string
		want entry
	}{
		"a pre-release":                         {"--version=v1.2.3-rc.1", entry{"argoproj-labs/istio", strings.Replace(released, "v1.2.3", "v1.2.3-rc.1", 1) + amd64, someSum}},
		"another name":                          {"--name=our-own/istio_2.x", entry{"our-own/istio_2.x", released + amd64, someSum}},
		"a mirror":                              {"--address=http://10.0.0.1:8080/a%20b", entry{"argoproj-labs/istio", "http://10.0.0.1:8080/a%20b/v1.2.3/" + amd64, someSum}},
		"an address with a slash at its end":    {"--address=https://example.org/releases/", entry{"argoproj-labs/istio", "https://example.org/releases/v1.2.3/" + amd64, someSum}},
		"an address with slashes at its end":    {"--address=https://[::1]//", entry{"argoproj-labs/istio", "https://[::1]/v1.2.3/" + amd64, someSum}},
		"a folder of the controller's own file": {"--address=file:///istio-plugin/", entry{"argoproj-labs/istio", "file:///istio-plugin/v1.2.3/" + amd64, someSum}},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newCall(t, amd64)
			if err := c.run(tc.flag); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]entry{tc.want}, registered(t, c.output)); diff != "" {
				t.Errorf("registered (-want +got):\n%s", diff)
			}
		})
	}
}

// The flags as .goreleaser.yaml gives them: nothing that a release or a snapshot is called with may be refused.
func TestTheCallsOfTheReleaseAreAccepted(t *testing.T) {
	configuration := readConfiguration(t)
	sign := configuration.Signs[0]
	_, binaries := released(t, configuration)
	for sentence, fields := range map[string]map[string]string{
		"a release":                        {"IsSnapshot": "", "Version": "1.2.3", "Tag": "v1.2.3"},
		"a pre-release":                    {"IsSnapshot": "", "Version": "1.2.3-rc.1", "Tag": "v1.2.3-rc.1"},
		"a snapshot":                       {"IsSnapshot": "true", "Version": "1.2.4-snapshot", "Tag": "v1.2.3"},
		"a snapshot before any tag exists": {"IsSnapshot": "true", "Version": "0.0.1-snapshot", "Tag": "v0.0.0"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.Mkdir("dist", 0o700); err != nil {
				t.Fatal(err)
			}
			call{checksums: filepath.Join("dist", "checksums.txt")}.list(t, binaries...)
			for _, binary := range binaries {
				var args []string
				for _, arg := range sign.Args[2:] { // behind run ./hack/configmap-snippet
					args = append(args, strings.NewReplacer("${artifactName}", binary, "${signature}", binary+".yaml").Replace(fill(t, arg, fields)))
				}
				if err := run(args, io.Discard); err != nil {
					t.Fatal(err)
				}
				version := "v" + fields["Version"]
				want := []entry{{"argoproj-labs/istio", "https://github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/releases/download/" + version + "/" + binary, someSum}}
				if diff := cmp.Diff(want, registered(t, binary+".yaml")); diff != "" {
					t.Errorf("registered for %s (-want +got):\n%s", binary, diff)
				}
			}
		})
	}
}

// controllersName is what Argo Rollouts v1.10.1 holds a plugin's name against (utils/config).
var controllersName = regexp.MustCompile(`^([a-zA-Z0-9\-]+)\/{1}([a-zA-Z0-9_\-.]+)$`)

// Whatever is given: either nothing is written, or what the controller reads from it is what was given.
func TestWhateverIsGivenIsRefusedOrReadAsItIs(t *testing.T) {
	c := newCall(t)
	written := 0
	rapid.Check(t, func(rt *rapid.T) {
		value := func(label string, good ...string) string {
			text := rapid.SampledFrom(good).Draw(rt, label)
			if rapid.IntRange(0, 2).Draw(rt, label+" is changed") > 0 {
				return text
			}
			at := rapid.IntRange(0, len(text)).Draw(rt, "at")
			return text[:at] + rapid.SampledFrom([]string{"", " ", " #", ": ", "\n", "\n- ", "\t", "'", `"`, "/", "//", "..", "-", "{", "[", "]", "&a ", "*", "!", "|", ">", "%", "@", "`", "?", "#", "~", "ä", "\x00", "\u2028", "1"}).Draw(rt, "sign") + text[at:]
		}
		version, binary := value("version", "v1.2.3", "v0.1.0-rc.1", "v1.0.0+build"), value("binary", amd64, arm64, "1e3")
		name, address := value("name", "argoproj-labs/istio", "-/_", "---/1", "0/0x1"), value("address", "https://example.org/a", "http://[::1]:80", "file:///a/b:/", "https://u:p@h/*&!'()")
		c.list(rt, binary)
		_ = os.Remove(c.output)
		err := c.run("--version="+version, "--binary="+binary, "--name="+name, "--address="+address)
		if err != nil {
			if _, err := os.Stat(c.output); !os.IsNotExist(err) {
				rt.Fatalf("refused and written: %v", err)
			}
			return
		}
		written++
		want := []entry{{name, strings.TrimRight(address, "/") + "/" + version + "/" + binary, someSum}}
		if diff := cmp.Diff(want, registered(t, c.output)); diff != "" {
			rt.Fatalf("read (-want +got):\n%s", diff)
		}
		location, err := url.ParseRequestURI(want[0].Location)
		if err != nil || !strings.HasSuffix(location.Path, "/"+version+"/"+binary) || location.RawQuery != "" || location.Fragment != "" {
			rt.Fatalf("the controller cannot fetch %s: %v", want[0].Location, err)
		}
		if !controllersName.MatchString(name) {
			rt.Fatalf("the controller has no plugin of the name %q", name)
		}
	})
	if written == 0 {
		t.Error("nothing was ever accepted")
	}
}
