// Command configmap-snippet writes the ConfigMap that registers one released binary of the plugin, with its address and
// its checksum taken from the release's checksums file. The release runs it once for each binary, so that nobody has to
// copy a sum by hand. Flags that would give a ConfigMap which the controller cannot use are refused.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/template"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "configmap-snippet:", err)
		os.Exit(1)
	}
}

// snippet is what the ConfigMap says. Its fields are used by the text below.
type snippet struct {
	// Name is the plugin's registered name.
	Name string
	// Address is that of the release's folder, without the binary's name.
	Address string
	Binary  string
	// Version is the release's tag.
	Version string
	// Sum is the binary's sha256 in 64 hex digits.
	Sum string
}

var text = template.Must(template.New("snippet").Parse(`# Registers {{.Binary}} {{.Version}}; the controller downloads it when it starts.
#
#   kubectl -n argo-rollouts patch configmap argo-rollouts-config --type merge --patch-file …
#
# leaves the other keys of the ConfigMap alone, which kubectl apply may not. If trafficRouterPlugins has entries of others
# already, add this one to them instead. The controller reads it only when it starts: restart it after a change.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argo-rollouts-config
  namespace: argo-rollouts
data:
  trafficRouterPlugins: |-
    - name: {{.Name}}
      location: {{.Address}}/{{.Version}}/{{.Binary}}
      sha256: {{.Sum}}
`))

// run reads the flags, then the checksums, and writes the file. On an error no file is left behind that was not there.
func run(args []string, usage io.Writer) error {
	flags := flag.NewFlagSet("configmap-snippet", flag.ContinueOnError)
	flags.SetOutput(usage)
	s := snippet{}
	checksums := flags.String("checksums", "", "the release's checksums `file`, lines of a sha256 and a name")
	output := flags.String("output", "", "the `file` to write")
	flags.StringVar(&s.Binary, "binary", "", "the binary's `name` in the checksums file")
	flags.StringVar(&s.Version, "version", "", "the release's `tag`")
	flags.StringVar(&s.Name, "name", "argoproj-labs/istio", "the `name` to register the plugin under")
	flags.StringVar(&s.Address, "address",
		"https://github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/releases/download", "the `URL` of the releases")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unknown argument %q: there are only flags", flags.Args())
	}
	if *checksums == "" || *output == "" || s.Binary == "" || s.Version == "" {
		return errors.New("give --checksums, --binary, --version and --output")
	}
	if err := s.check(); err != nil {
		return err
	}
	s.Address = strings.TrimRight(s.Address, "/") // a slash follows in the text
	return write(s, *checksums, *output)
}

func write(s snippet, checksums, output string) error {
	list, err := os.ReadFile(checksums)
	if err != nil {
		return err
	}
	if s.Sum, err = sumOf(string(list), s.Binary); err != nil {
		return fmt.Errorf("%s: %w", checksums, err)
	}
	var out strings.Builder
	if err := text.Execute(&out, s); err != nil {
		return err
	}
	return os.WriteFile(output, []byte(out.String()), 0o644)
}

// sha256Form is the only form that the controller checks properly: any other length makes it compare with something
// that no file has as its sum.
var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

// sumOf finds the binary's line. The name has to be there once and as a whole: the names of two architectures begin
// alike.
func sumOf(list, binary string) (string, error) {
	found := ""
	for _, line := range strings.Split(list, "\n") {
		fields := strings.Fields(line)
		// sha256sum marks a binary file with a star before its name.
		if len(fields) != 2 || strings.TrimPrefix(fields[1], "*") != binary {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("%s is listed twice", binary)
		}
		if !sha256Form.MatchString(fields[0]) {
			return "", fmt.Errorf("the sum of %s is %q, not 64 hex digits in small letters", binary, fields[0])
		}
		found = fields[0]
	}
	if found == "" {
		return "", fmt.Errorf("%s is not listed", binary)
	}
	return found, nil
}
