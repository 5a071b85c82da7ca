package timeline

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func TestATimelineThatIsReadAgainIsTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := New(subsetSubject(), time.Date(2026, 3, 1, 12, 0, 0, 7, time.UTC), ms(4999)+1, drawnEntries(rt))
		want.Gaps = rapid.SampledFrom([][]string{nil, {"a watch was lost"}}).Draw(rt, "gaps")
		text, err := json.Marshal(want)
		if err != nil {
			rt.Fatal(err)
		}
		var got Timeline
		if err := json.Unmarshal(text, &got); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("-written +read:\n%s", diff)
		}
	})
}

func TestEveryKindOfFactIsReadAgain(t *testing.T) {
	yes := true
	s := newScript().by("someone").at(20).mark("begin")
	s.add("web", Service{Hash: oldHash}).event("Reason", "message").weight(7).hashes(oldHash, newHash).pods(oldHash, 3, 2)
	want := s.status(func(r *Rollout) { r.Verified = &yes }).timeline(40)
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Timeline
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
}

func TestWholeObjectsAreNotWritten(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": "whole"}}
	tl := newScript().status(func(r *Rollout) { r.Object = object }).timeline(40)
	tl.Entries[0].Object = object
	text, err := json.Marshal(tl)
	if err != nil || strings.Contains(string(text), "whole") {
		t.Errorf("error %v, written is %s", err, text)
	}
}

func TestATextThatIsNoTimelineIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:           "timeline: json: cannot unmarshal array",
		`{"end": "?"}`: `timeline: end: time: invalid duration "?"`,
		`{"end": "1s", "entries": [{"at": "0s", "kind": "Mark"}, {"at": "late", "kind": "Mark"}]}`: `timeline: entry 1: at: time: invalid duration "late"`,
		`{"end": "1s", "entries": [{"at": "0s", "kind": "Pod", "fact": {}}]}`:                      `timeline: entry 0: kind "Pod": a timeline has none of it`,
		`{"end": "1s", "entries": [{"at": "0s", "kind": "Event", "fact": {"Reason": 1}}]}`:         "timeline: entry 0: json: cannot unmarshal number",
	} {
		var tl Timeline
		if err := json.Unmarshal([]byte(text), &tl); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
