package lint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// part is the n-th document of the base, from 0.
func part(n int) string { return strings.Split(bySubsets, "---\n")[n] }

func judge(o lint.Options, texts ...string) lint.Report {
	var in lint.Input
	for _, text := range texts {
		in.Read("web.yaml", []byte(text))
	}
	return lint.Run(in, o)
}

func TestOfflineWhatIsNotThereIsANoteOnce(t *testing.T) {
	report := judge(lint.Options{}, part(0))
	want := []string{
		"DestinationRule shop/web is not in the input: what it says was not checked",
		"VirtualService shop/web is not in the input: what it says was not checked",
	}
	if diff := cmp.Diff(want, report.Notes); diff != "" || len(report.Findings) > 0 {
		t.Errorf("%s\nfound %+v", diff, report.Findings)
	}
	missing := []lint.Ref{
		{Group: "networking.istio.io", Kind: "DestinationRule", Namespace: "shop", Name: "web"},
		{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"},
	}
	if diff := cmp.Diff(missing, report.Missing); diff != "" {
		t.Error(diff)
	}
}

func TestAMissingServiceIsAskedForWhenItsHostIsKnown(t *testing.T) {
	report := judge(lint.Options{}, part(0), part(2), part(3))
	want := []lint.Ref{{Kind: "Service", Namespace: "shop", Name: "web"}}
	if diff := cmp.Diff(want, report.Missing); diff != "" || len(report.Findings) > 0 {
		t.Errorf("%s\nfound %+v", diff, report.Findings)
	}
}

func TestARolloutOfAnotherPluginIsNoted(t *testing.T) {
	other := strings.Replace(bySubsets, "argoproj-labs/istio", "argoproj-labs/gatewayAPI", 1)
	report := judge(lint.Options{}, other)
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "names other plugins") || report.Rollouts != 0 {
		t.Errorf("%+v", report)
	}
	report = judge(lint.Options{PluginName: "argoproj-labs/gatewayAPI"}, other)
	if len(report.Notes)+len(report.Findings) > 0 || report.Rollouts != 1 {
		t.Errorf("%+v", report)
	}
}

func TestOnlyTheRolloutThatIsAskedForIsJudged(t *testing.T) {
	second := strings.ReplaceAll(faultyBase(), "web", "cart")
	if report := judge(lint.Options{Only: "web"}, bySubsets, second); report.Rollouts != 1 || len(report.Findings) > 0 {
		t.Errorf("%+v", report)
	}
	if report := judge(lint.Options{Only: "cart"}, bySubsets, second); report.Rollouts != 1 || len(report.Findings) == 0 {
		t.Errorf("%+v", report)
	}
	if report := judge(lint.Options{Only: "none"}, bySubsets); report.Rollouts != 0 {
		t.Errorf("%+v", report)
	}
	elsewhere := strings.ReplaceAll(faultyBase(), "shop", "other")
	if report := judge(lint.Options{Only: "web", OnlyIn: "shop"}, bySubsets, elsewhere); report.Rollouts != 1 || len(report.Findings) > 0 {
		t.Errorf("%+v", report)
	}
	if report := judge(lint.Options{Only: "web", OnlyIn: "other"}, bySubsets, elsewhere); report.Rollouts != 1 || len(report.Findings) == 0 {
		t.Errorf("%+v", report)
	}
}

func TestADeploymentThatIsNotThereIsAFindingWhereAllIsThere(t *testing.T) {
	rollout := func(kind string) string {
		return replaced(bySubsets, "  selector: {matchLabels: {app: web}}\n  template:\n    metadata:\n      labels: {app: web, version: v2}\n    spec: {}\n", "  workloadRef: {apiVersion: apps/v1, kind: "+kind+", name: web}\n")
	}
	all := func(string, string) bool { return true }
	report := judge(lint.Options{Complete: all}, rollout("Deployment"))
	if len(report.Findings) != 1 || report.Findings[0].Code != "ARI0410" || report.Findings[0].Field != "spec.workloadRef.name" || report.Findings[0].Message != "Deployment shop/web does not exist" {
		t.Errorf("%+v", report.Findings)
	}
	if report := judge(lint.Options{Complete: all}, rollout("PodTemplate")); len(report.Findings) != 0 {
		t.Errorf("a kind that is not looked at: %+v", report.Findings)
	}
	if report := judge(lint.Options{}, rollout("Deployment")); len(report.Findings) != 0 || !strings.Contains(strings.Join(report.Notes, "\n"), "Deployment shop/web is not in the input") {
		t.Errorf("where not all is there: %+v, %q", report.Findings, report.Notes)
	}
}

func TestAFindingIsSuppressedByCode(t *testing.T) {
	annotated := func(text, after, codes string) string {
		return strings.Replace(text, after, after+"  annotations: {"+lint.IgnoreAnnotation+": \""+codes+"\"}\n", 1)
	}
	onRollout := "kind: Rollout\nmetadata:\n"
	onRule := "kind: DestinationRule\nmetadata:\n"
	wrongLabel := strings.Replace(bySubsets, "  - name: canary\n    labels: {app: web}\n", "  - name: canary\n    labels: {app: web, role: c}\n", 1)
	for sentence, tc := range map[string]struct {
		text    string
		options lint.Options
		ignored int
	}{
		"by nothing":                               {wrongLabel, lint.Options{}, 0},
		"by the options":                           {wrongLabel, lint.Options{Ignore: []string{"ARI0303"}}, 1},
		"by the options, another code":             {wrongLabel, lint.Options{Ignore: []string{"ARI0304"}}, 0},
		"by the object that it is about":           {annotated(wrongLabel, onRule, "ARI0303"), lint.Options{}, 1},
		"by the Rollout for which it was found":    {annotated(wrongLabel, onRollout, "ARI0101, ARI0303"), lint.Options{}, 1},
		"by the object, in lower case":             {annotated(wrongLabel, onRule, "ari0303"), lint.Options{}, 1},
		"by the Rollout, another code":             {annotated(wrongLabel, onRollout, "ARI0101"), lint.Options{}, 0},
		"by an annotation, not a part of the code": {annotated(wrongLabel, onRollout, "ARI030"), lint.Options{}, 0},
	} {
		t.Run(sentence, func(t *testing.T) {
			report := judge(tc.options, tc.text)
			if report.Ignored != tc.ignored || len(report.Findings) != 1-tc.ignored {
				t.Errorf("%d ignored, found %+v", report.Ignored, report.Findings)
			}
		})
	}
	report := judge(lint.Options{}, annotated(wrongLabel, onRollout, "ARI030"))
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], `names "ARI030", which is no code`) {
		t.Errorf("notes: %q", report.Notes)
	}
}

func TestTheNativeRouterIsJudgedByWhatHoldsForIt(t *testing.T) {
	native := strings.Replace(bySubsets, "        plugins:\n          argoproj-labs/istio:\n", "        istio:\n", 1)
	native = strings.Replace(native, "  strategy:\n", "  rollbackWindow: {revisions: 3}\n  strategy:\n", 1)
	native = strings.ReplaceAll(native, "            ", "          ")
	report := judge(lint.Options{}, native)
	if len(report.Findings) != 1 || report.Findings[0].Code != "ARI0401" || report.Findings[0].Field != "spec.rollbackWindow" {
		t.Errorf("%+v", report)
	}
}

func TestTheOrderOfTheFilesMakesNoDifference(t *testing.T) {
	wrong := strings.Replace(faultyBase(), "app: web}\n  - name: canary", "app: web, a: b, c: d}\n  - name: canary", 1)
	parts := strings.Split(wrong, "---\n")
	forward, backward := judge(lint.Options{}, parts...), judge(lint.Options{}, parts[3], parts[2], parts[1], parts[0])
	if diff := cmp.Diff(forward.Findings, backward.Findings); diff != "" || len(forward.Findings) < 3 {
		t.Errorf("%d findings\n%s", len(forward.Findings), diff)
	}
}

func TestOfTwoObjectsWithOneNameTheLastCounts(t *testing.T) {
	codes := func(texts ...string) string {
		var all []string
		for _, f := range judge(lint.Options{}, texts...).Findings {
			all = append(all, f.Code)
		}
		return strings.Join(all, " ")
	}
	if got := codes(bySubsets, part(1)); got != "" {
		t.Errorf("two that are equal: %s", got)
	}
	if got := codes(faultyBase(), part(0)); got != "ARI0004" {
		t.Errorf("the faulty one first: %s", got)
	}
	if got := codes(bySubsets, strings.Split(faultyBase(), "---\n")[0]); got != "ARI0004 ARI0202" {
		t.Errorf("the faulty one last: %s", got)
	}
}

func TestAPatchIsNeverTheRollout(t *testing.T) {
	patch := "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 3}\n"
	for sentence, texts := range map[string][]string{"behind it": {faultyBase(), patch}, "before it": {patch, faultyBase()}} {
		report := judge(lint.Options{}, texts...)
		var codes []string
		for _, f := range report.Findings {
			codes = append(codes, f.Code)
		}
		if report.Rollouts != 1 || strings.Join(codes, " ") != "ARI0004 ARI0202" || !strings.Contains(report.Findings[0].Message, "as a patch") {
			t.Errorf("%s: %+v", sentence, report)
		}
	}
	report := judge(lint.Options{}, bySubsets+"---\n"+strings.Replace(patch, "shop", "other", 1))
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "Rollout other/web (in web.yaml:64) has no spec.strategy") {
		t.Errorf("a patch alone: %+v", report)
	}
}

func TestDoublesOfRolloutsAreAlwaysTold(t *testing.T) {
	plain := "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: shop}\nspec: {strategy: {canary: {}}}\n"
	report := judge(lint.Options{}, plain, strings.Replace(plain, "{canary", "{blueGreen", 1))
	if len(report.Findings) != 1 || report.Findings[0].Code != "ARI0004" || report.Findings[0].Severity != lint.Error {
		t.Errorf("%+v", report)
	}
	report = judge(lint.Options{}, plain, plain)
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "with the same content") || len(report.Findings) > 0 {
		t.Errorf("%+v", report)
	}
}

func TestTheWorstFindingCounts(t *testing.T) {
	for want, codes := range map[lint.Severity][]lint.Severity{
		0: nil, lint.Info: {lint.Info}, lint.Error: {lint.Info, lint.Error, lint.Warning},
	} {
		var report lint.Report
		for _, severity := range codes {
			report.Findings = append(report.Findings, lint.Finding{Severity: severity})
		}
		if got := report.Worst(); got != want {
			t.Errorf("%v: %s, want %s", codes, got, want)
		}
	}
	for _, severity := range []lint.Severity{lint.Info, lint.Warning, lint.Error} {
		if got, err := lint.ParseSeverity(severity.String()); err != nil || got != severity {
			t.Errorf("%s is read as %s, %v", severity, got, err)
		}
	}
	for _, word := range []string{"", "fatal", "Error"} {
		if _, err := lint.ParseSeverity(word); err == nil {
			t.Errorf("%q is taken", word)
		}
	}
}
