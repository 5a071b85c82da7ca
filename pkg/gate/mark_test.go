package gate_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

func marked(value string) *v1alpha1.Rollout {
	return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gate.Annotation: value}}}
}

func TestMarkOf(t *testing.T) {
	const why = "rolled back from 25: 5xx 4.2 % over 1 %"
	for sentence, tc := range map[string]struct {
		value string
		want  gate.Mark
	}{
		"decided, and the abort may be missing":   {"6c8b7d9f5 aborting: " + why, gate.Mark{Phase: gate.Aborting, Text: why}},
		"aborted":                                 {"6c8b7d9f5 aborted: " + why, gate.Mark{Phase: gate.Aborted, Text: why}},
		"of another revision":                     {"7d4f9c aborting: " + why, gate.Mark{}},
		"of a revision that begins like this one": {"6c8b7d9f55 aborting: " + why, gate.Mark{}},
		"empty":                                {"", gate.Mark{}},
		"a word that is none of ours":          {"6c8b7d9f5 abortin: " + why, gate.Mark{Phase: gate.Aborted, Text: why}},
		"cut off behind the hash":              {"6c8b7d9f5", gate.Mark{Phase: gate.Aborted}},
		"cut off behind the phase":             {"6c8b7d9f5 aborting", gate.Mark{Phase: gate.Aborting}},
		"a hash that somebody wrote by itself": {"6c8b7d9f5 because", gate.Mark{Phase: gate.Aborted}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := gate.MarkOf(marked(tc.value), "6c8b7d9f5"); got != tc.want {
				t.Errorf("%q is %+v, want %+v", tc.value, got, tc.want)
			}
		})
	}
	if got := gate.MarkOf(&v1alpha1.Rollout{}, "6c8b7d9f5"); got != (gate.Mark{}) {
		t.Errorf("a Rollout without annotations has %+v", got)
	}
	if got := gate.MarkOf(marked(" aborting: x"), ""); got != (gate.Mark{}) {
		t.Errorf("a Rollout without a hash has %+v", got)
	}
}

func TestAMarkIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hash := rapid.StringMatching(`[a-z0-9]{1,10}`).Draw(t, "hash")
		mark := gate.Mark{
			Phase: rapid.SampledFrom([]gate.Phase{gate.Aborting, gate.Aborted}).Draw(t, "phase"),
			Text:  rapid.String().Draw(t, "text"),
		}
		if got := gate.MarkOf(marked(mark.Value(hash)), hash); got != mark {
			t.Fatalf("%+v is read as %+v", mark, got)
		}
	})
}
