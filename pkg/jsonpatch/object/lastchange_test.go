package object

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLastChange(t *testing.T) {
	entry := func(manager, at, subresource string) any {
		e := map[string]any{"manager": manager, "time": at}
		if subresource != "" {
			e["subresource"] = subresource
		}
		return e
	}
	for sentence, tc := range map[string]struct {
		entries any
		want    string
	}{
		"the newest counts, whoever wrote it": {[]any{entry("a", "2026-01-01T00:00:00Z", ""), entry("b", "2026-01-01T00:00:02Z", ""), entry("a", "2026-01-01T00:00:01Z", "")}, "2026-01-01T00:00:02Z"},
		"a status does not":                   {[]any{entry("a", "2026-01-01T00:00:00Z", ""), entry("b", "2026-01-01T00:00:02Z", "status")}, "2026-01-01T00:00:00Z"},
		"what cannot be read is passed over":  {[]any{entry("a", "yesterday", ""), "b", entry("c", "2026-01-01T00:00:00Z", "")}, "2026-01-01T00:00:00Z"},
		"a time with an offset is understood": {[]any{entry("a", "2026-01-01T02:00:00+02:00", "")}, "2026-01-01T00:00:00Z"},
		"entries of the wrong type as well":   {[]any{nil, int64(1), map[string]any{"time": true}, entry("c", "2026-01-01T00:00:00Z", "")}, "2026-01-01T00:00:00Z"},
		"and a list that is none":             {"x", "0001-01-01T00:00:00Z"},
		"no entry, no time":                   {nil, "0001-01-01T00:00:00Z"},
	} {
		t.Run(sentence, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": tc.entries}}}
			if got := LastChange(u).UTC().Format(time.RFC3339); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if got := LastChange(nil); !got.IsZero() {
		t.Errorf("nothing changed at %s", got)
	}
}
