package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Entry is one version of one object, or a mark.
type Entry struct {
	// At is when it was written, at the latest: no later than its own arrival
	// and than the arrival of anything written after it. Counted from the start
	// of the recording.
	At time.Duration
	// ResourceVersion orders the entries. 0 for a mark, which stands after
	// everything known to be written by then.
	ResourceVersion uint64
	Name            string
	// Found is set for what was there when the recording began: not a write.
	Found bool
	// Deleted is set when the object is gone; Fact is its last version.
	Deleted bool
	// Manager is the field manager of the write, empty when managedFields do
	// not tell.
	Manager string
	Fact    Fact
	// Object is the whole object, nil in timelines made by hand. Not to be
	// changed.
	Object *unstructured.Unstructured
}

// isWrite is whether the entry is a write of that kind seen while recording.
func (e Entry) isWrite(kind Kind) bool {
	return !e.Found && !e.Deleted && e.Fact != nil && e.Fact.Kind() == kind
}

// Timeline is what happened, in the order of writing. Values are never changed
// after New, so a Timeline may be shared between goroutines.
type Timeline struct {
	Subject Subject
	// Start is the wall time of At = 0, End the length of the recording.
	Start   time.Time
	End     time.Duration
	Entries []Entry
	// Gaps are sentences about changes that may be missing. A judgement over a
	// timeline with gaps proves less than it seems to.
	Gaps []string
}

// New orders entries, which may come in any order and more than once, into a
// timeline of the given length. The slice is not changed; entries without a
// Fact are left out.
func New(subject Subject, start time.Time, end time.Duration, entries []Entry) Timeline {
	writes, marks := split(entries)
	writes = distinct(writes)
	tightenTimes(writes)
	settleStart(writes)
	merged := mergeMarks(writes, marks)
	if n := len(merged); n > 0 {
		end = max(end, merged[n-1].At)
	}
	return Timeline{Subject: subject, Start: start, End: end, Entries: merged}
}

// split parts the marks, which have no resourceVersion, from the writes, and
// copies both so that the caller's slice stays in its order.
func split(entries []Entry) (writes, marks []Entry) {
	for _, e := range entries {
		switch e.Fact.(type) {
		case nil:
		case Mark:
			marks = append(marks, e)
		default:
			writes = append(writes, e)
		}
	}
	return writes, marks
}

// distinct sorts by resourceVersion and keeps one entry of each version. A
// version can arrive by the LIST and by the watch; the earlier arrival is the
// better witness of when it was written.
func distinct(writes []Entry) []Entry {
	slices.SortFunc(writes, func(a, b Entry) int {
		return cmp.Or(sameVersion(a, b), cmp.Compare(a.At, b.At))
	})
	var kept []Entry
	for _, e := range writes {
		if n := len(kept); n > 0 && sameVersion(kept[n-1], e) == 0 {
			kept[n-1].Found = kept[n-1].Found || e.Found
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// sameVersion is 0 for two witnesses of one version. The rest of the key makes
// the order of the remaining ties a fixed one: deletions that a later LIST
// reveals share that LIST's version.
func sameVersion(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(a.ResourceVersion, b.ResourceVersion),
		cmp.Compare(a.Fact.Kind(), b.Fact.Kind()),
		strings.Compare(a.Name, b.Name),
		compareBool(a.Deleted, b.Deleted),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// tightenTimes lets no write be later than one that came after it: watches of
// different kinds deliver with different delays, and the quickest tells most.
func tightenTimes(writes []Entry) {
	for i := len(writes) - 2; i >= 0; i-- {
		writes[i].At = min(writes[i].At, writes[i+1].At)
	}
}

// settleStart counts as found whatever is older than something found. The
// LISTs of the kinds are a few milliseconds apart, and a change in between is
// part of the beginning.
func settleStart(writes []Entry) {
	found := false
	for i := len(writes) - 1; i >= 0; i-- {
		found = found || writes[i].Found
		if found {
			writes[i].Found = true
			writes[i].At = 0
		}
	}
}

// mergeMarks puts each mark behind the writes known by its time. A write that
// was made before and arrives later stands behind the mark: that errs on the
// side of counting too much.
func mergeMarks(writes, marks []Entry) []Entry {
	slices.SortFunc(marks, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.At, b.At), strings.Compare(a.Name, b.Name))
	})
	var merged []Entry
	for _, m := range marks {
		n := 0
		for n < len(writes) && writes[n].At <= m.At {
			n++
		}
		merged = append(append(merged, writes[:n]...), m)
		writes = writes[n:]
	}
	return append(merged, writes...)
}

// Since cuts a timeline at a mark: the mark becomes time 0, what was there then
// counts as found, and earlier Events and marks are gone.
func (t Timeline) Since(mark string) (Timeline, error) {
	at := t.indexOf(mark)
	if at < 0 {
		return Timeline{}, fmt.Errorf("timeline of Rollout %s/%s has no mark %q: call Mark while recording",
			t.Subject.Namespace, t.Subject.Rollout, mark)
	}
	zero := t.Entries[at].At
	entries := standing(t.Entries[:at])
	for _, e := range t.Entries[at+1:] {
		e.At -= zero
		entries = append(entries, e)
	}
	cut := New(t.Subject, t.Start.Add(zero), t.End-zero, entries)
	cut.Gaps = t.Gaps
	return cut, nil
}

func (t Timeline) indexOf(mark string) int {
	return slices.IndexFunc(t.Entries, func(e Entry) bool {
		_, isMark := e.Fact.(Mark)
		return isMark && e.Name == mark
	})
}

// standing is the newest version of each object, even if that is its deletion.
func standing(entries []Entry) []Entry {
	type object struct {
		kind Kind
		name string
	}
	seen := map[object]bool{}
	var kept []Entry
	for _, e := range slices.Backward(entries) {
		id := object{e.Fact.Kind(), e.Name}
		if seen[id] || id.kind == KindMark || id.kind == KindEvent {
			continue
		}
		seen[id] = true
		e.At, e.Found = 0, true
		kept = append(kept, e)
	}
	return kept
}
