package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/simulate"
)

// ran runs the command as far as it goes without a lab.
func ran(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), args, streams{strings.NewReader(stdin), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

func TestHelpAndTheListOfScenariosNeedNoFiles(t *testing.T) {
	for args, want := range map[string]string{
		"--help":          "Exit codes: 0 fine, 1 the plugin broke an invariant or came to no end, 2 could not run.",
		"-h":              "--scenario",
		"--scenario list": "canary     One new revision goes through all steps.\n",
	} {
		code, out, errOut := ran(t, "", strings.Fields(args)...)
		if code != exitFine || errOut != "" || !strings.Contains(out, want) {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errOut)
		}
	}
}

func TestWhatCannotRunSaysWhyBeforeAnythingIsStarted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web}\nspec:\n  replicas: many\n  strategy: {canary: {trafficRouting: {istio: {virtualService: {name: web}}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args, stdin string
		want        []string
	}{
		"no files":               {"", "", []string{"give the Rollout with -f", "see --help"}},
		"a flag that is unknown": {"--colour", "", []string{"unknown flag: --colour", "see --help"}},
		"all faults at once": {"web.yaml -o yaml --scenario chaos,rollback --pause 2h", "",
			[]string{`unknown argument ["web.yaml"]`, "-o yaml", "--scenario chaos", "--pause 2h0m0s"}},
		"an amount that is none":      {"-f - --failing lots", "", []string{`"lots" is neither a number of pods`}},
		"a file that is not there":    {"-f nowhere.yaml", "", []string{"-f nowhere.yaml", "no such file"}},
		"an empty stdin":              {"-f -", "  \n", []string{"stdin is empty"}},
		"a field of the wrong type":   {"-f " + file, "", []string{file + ":5: Rollout default/web spec.replicas:"}},
		"a picture that has no place": {"--svg nowhere/web.svg -f -", "", []string{"--svg nowhere/web.svg: there is no folder nowhere"}},
		"no Rollout":                  {"-f -", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n", []string{"there is no Rollout"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := ran(t, c.stdin, strings.Fields(c.args)...)
			if code != exitFailed || out != "" {
				t.Errorf("code %d, stdout %q", code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(errOut, want) {
					t.Errorf("%q is not in %q", want, errOut)
				}
			}
		})
	}
}

func TestFlagsBecomeSettings(t *testing.T) {
	o, _, err := parse(strings.Fields("-f a -f b --scenario canary,rollback,canary --failing 30% --broken 2 --startup 1s --at 3 --scale-to 40 --rollout web"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]simulate.Scenario{simulate.Canary, simulate.Rollback}, o.scenarios); diff != "" {
		t.Errorf("scenarios:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, o.files); diff != "" {
		t.Errorf("files:\n%s", diff)
	}
	s := o.settings
	if s.Failing.String() != "30%" || s.Broken.String() != "2" || s.Startup.Seconds() != 1 || s.At != 3 || s.ScaleAt != -1 || s.ScaleTo != 40 || s.Rollout != "web" {
		t.Errorf("settings are %+v", s)
	}
	if o, _, err := parse([]string{"-f", "a"}); err != nil || len(o.scenarios) != 1 || o.scenarios[0] != simulate.Rollback {
		t.Errorf("without --scenario it plays %v, %v", o.scenarios, err)
	}
}

func TestEachOfSeveralScenariosHasAPicture(t *testing.T) {
	one, two := []simulate.Scenario{simulate.Rollback}, []simulate.Scenario{simulate.Rollback, simulate.Canary}
	if got := (options{svg: "a/web.svg", scenarios: one}).picture(simulate.Rollback); got != "a/web.svg" {
		t.Errorf("the only one goes to %s", got)
	}
	if got := (options{svg: "a/web.svg", scenarios: two}).picture(simulate.Canary); got != "a/web-canary.svg" {
		t.Errorf("one of two goes to %s", got)
	}
}
