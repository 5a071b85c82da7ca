package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
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
	for args, file := range map[string]string{"--help": "help.txt", "-h": "help.txt", "--scenario list": "scenarios.txt"} {
		code, out, errOut := ran(t, "", strings.Fields(args)...)
		if code != exitFine || errOut != "" {
			t.Errorf("%s: code %d, %q", args, code, errOut)
		}
		golden.Compare(t, file, out)
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
