package timeline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// plain compares entries by what a reader sees.
var plain = cmp.Options{cmpopts.IgnoreFields(Entry{}, "Object"), cmpopts.IgnoreFields(Rollout{}, "Object"), cmpopts.EquateEmpty()}

func names(t Timeline) string {
	var out []string
	for _, e := range t.Entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func svc(at int, version uint64, name string) Entry {
	return Entry{At: ms(at), ResourceVersion: version, Name: name, Fact: Service{}}
}

func TestEntriesAreOrderedByResourceVersion(t *testing.T) {
	found := svc(5, 20, "found")
	found.Found = true
	mark := Entry{At: ms(25), Name: "mark", Fact: Mark{}}
	for sentence, c := range map[string]struct {
		entries []Entry
		want    string
	}{
		"numbers decide, not text: 9 comes before 10": {
			[]Entry{svc(10, 10, "ten"), svc(20, 9, "nine")}, "nine ten"},
		"what arrives late is put where it was written": {
			[]Entry{svc(30, 3, "c"), svc(50, 2, "b"), svc(10, 1, "a")}, "a b c"},
		"a version that came by LIST and by watch stands once": {
			[]Entry{svc(10, 1, "a"), svc(11, 1, "a")}, "a"},
		"a mark stands after everything written by then": {
			[]Entry{mark, svc(20, 1, "a"), svc(30, 2, "b")}, "a mark b"},
		"a mark after the last write comes last": {
			[]Entry{mark, svc(20, 1, "a")}, "a mark"},
		"an entry without a fact is left out": {
			[]Entry{{Name: "empty", ResourceVersion: 1}, svc(1, 2, "a")}, "a"},
		"nothing gives an empty timeline": {nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := names(New(subsetSubject(), time.Time{}, ms(100), c.entries)); got != c.want {
				t.Errorf("order %q, want %q", got, c.want)
			}
		})
	}
}

func TestAWriteIsNoLaterThanWhatWasWrittenAfterIt(t *testing.T) {
	tl := New(subsetSubject(), time.Time{}, ms(100), []Entry{svc(90, 1, "slow watch"), svc(40, 2, "quick watch"), svc(60, 3, "last")})
	var got []time.Duration
	for _, e := range tl.Entries {
		got = append(got, e.At)
	}
	if diff := cmp.Diff([]time.Duration{ms(40), ms(40), ms(60)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsOlderThanSomethingFoundWasFoundToo(t *testing.T) {
	found := svc(5, 20, "found")
	found.Found = true
	tl := New(subsetSubject(), time.Time{}, ms(100), []Entry{svc(6, 19, "before"), found, svc(7, 21, "after")})
	for _, e := range tl.Entries {
		if want := e.Name != "after"; e.Found != want {
			t.Errorf("%s: Found = %v", e.Name, e.Found)
		}
		if e.Found && e.At != 0 {
			t.Errorf("%s: found at %s, not at the start", e.Name, e.At)
		}
	}
}

func TestAVersionThatTheWatchDeliveredBeforeTheLISTWasFound(t *testing.T) {
	found := svc(50, 20, "a")
	found.Found = true
	tl := New(subsetSubject(), time.Time{}, ms(100), []Entry{svc(40, 20, "a"), found})
	if len(tl.Entries) != 1 || !tl.Entries[0].Found {
		t.Errorf("entries %+v", tl.Entries)
	}
}

func TestTheEndIsNeverBeforeTheLastEntry(t *testing.T) {
	if tl := New(subsetSubject(), time.Time{}, ms(10), []Entry{svc(80, 1, "a")}); tl.End != ms(80) {
		t.Errorf("End = %s", tl.End)
	}
}

func TestACutBeginsAtItsMark(t *testing.T) {
	full := rollBack().at(100).event("Before", "").mark("second").at(150).pods(oldHash, 20, 2).at(900).weight(10).timeline(2000)
	full.Gaps = []string{"something is missing"}
	cut, err := full.Since("second")
	if err != nil {
		t.Fatal(err)
	}
	states := cut.States()
	want := full.States()
	first, last := states[0], states[len(states)-1]
	wantLast := want[len(want)-1]
	wantLast.At, wantLast.Entry.At, wantLast.Events = ms(800), ms(800), nil
	if diff := cmp.Diff(wantLast, last, plain); diff != "" {
		t.Errorf("last state (-want +got):\n%s", diff)
	}
	if first.At != 0 || first.CanaryHash != oldHash || first.Pods[oldHash].Size != 2 || len(first.Events) != 0 {
		t.Errorf("first state %+v", first)
	}
	if len(states) != 3 || cut.End != ms(1900) || !cut.Start.Equal(full.Start.Add(ms(100))) || len(cut.Gaps) != 1 {
		t.Errorf("%d states, end %s, start %s, gaps %q", len(states), cut.End, cut.Start, cut.Gaps)
	}
	for _, e := range cut.Entries {
		if k := e.Fact.Kind(); k == KindEvent || k == KindMark {
			t.Errorf("%s %s from before the mark is still there", k, e.Name)
		}
	}
	if cut.Measure().WritesOf(KindVirtualService) != 1 {
		t.Error("writes before the mark are counted")
	}
}

func TestACutForgetsWhatWasDeletedBefore(t *testing.T) {
	s := healthy().at(10)
	s.pods(oldHash, 0, 0)
	s.entries[len(s.entries)-1].Deleted = true
	cut, err := s.at(20).mark("m").timeline(100).Since("m")
	if err != nil {
		t.Fatal(err)
	}
	if pods, still := cut.States()[0].Pods[oldHash]; still {
		t.Errorf("the deleted ReplicaSet is back with %+v", pods)
	}
}

func TestACutAtAnUnknownMarkSaysSo(t *testing.T) {
	_, err := healthy().timeline(10).Since("nowhere")
	if err == nil || !strings.Contains(err.Error(), `Rollout shop/web has no mark "nowhere"`) {
		t.Errorf("error %v", err)
	}
}

// drawnEntries are writes of a few objects with distinct resourceVersions, as
// etcd gives them, arriving whenever.
func drawnEntries(rt *rapid.T) []Entry {
	var entries []Entry
	n := rapid.IntRange(0, 30).Draw(rt, "entries")
	for version := 1; version <= n; version++ {
		e := Entry{
			ResourceVersion: uint64(version), At: ms(rapid.IntRange(0, 5000).Draw(rt, "arrival")),
			Found: version < n/4, Deleted: rapid.IntRange(0, 9).Draw(rt, "deleted") == 0,
		}
		e.Name, e.Fact = drawnFact(rt)
		entries = append(entries, e)
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "marks") {
		entries = append(entries, Entry{At: ms(rapid.IntRange(0, 5000).Draw(rt, "mark")), Name: string(rune('a' + i)), Fact: Mark{}})
	}
	return entries
}

func drawnFact(rt *rapid.T) (string, Fact) {
	hash := rapid.SampledFrom([]string{"", oldHash, newHash})
	count := rapid.Int32Range(0, 20)
	switch rapid.IntRange(0, 4).Draw(rt, "kind") {
	case 0:
		w := rapid.Int32Range(-20, 120).Draw(rt, "weight")
		return "web", VirtualService{Routes: []Route{splitRoute("primary", w, 100-w)}}
	case 1:
		return "web", DestinationRule{Host: "web", Hashes: map[string]string{"canary": hash.Draw(rt, "canary"), "stable": hash.Draw(rt, "stable")}}
	case 2:
		rs := ReplicaSet{Hash: hash.Draw(rt, "hash"), Pods: Pods{count.Draw(rt, "size"), count.Draw(rt, "ready"), count.Draw(rt, "available")}}
		return "web-" + rs.Hash, rs
	case 3:
		phase := rapid.SampledFrom([]string{"", "Healthy", "Progressing"}).Draw(rt, "phase")
		return "web", Rollout{Phase: phase, Replicas: count.Draw(rt, "replicas"), DesiredWeight: count.Draw(rt, "desired"), Current: true}
	default:
		return "web.event", Event{Reason: "Something"}
	}
}

func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		entries := drawnEntries(rt)
		want := New(subsetSubject(), time.Time{}, 0, entries)
		doubled := append(entries, entries[:len(entries)/2]...)
		got := New(subsetSubject(), time.Time{}, 0, rapid.Permutation(doubled).Draw(rt, "arrival order"))
		// Marks have no version: one that arrives twice is two marks.
		got.Entries, want.Entries = withoutMarks(got.Entries), withoutMarks(want.Entries)
		if diff := cmp.Diff(want.States(), got.States(), plain); diff != "" {
			rt.Fatalf("states differ (-in order +shuffled):\n%s", diff)
		}
	})
}

func withoutMarks(entries []Entry) []Entry {
	writes, _ := split(entries)
	return writes
}

func TestTimeOnlyRunsForward(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tl := New(subsetSubject(), time.Time{}, 0, drawnEntries(rt))
		var total, last time.Duration
		tl.eachState(func(s State, lasted time.Duration) {
			if s.At < last || lasted < 0 {
				rt.Fatalf("state at %s after %s lasted %s", s.At, last, lasted)
			}
			last = s.At
			total += lasted
		})
		if total != tl.End {
			rt.Fatalf("the states last %s, the timeline %s", total, tl.End)
		}
	})
}
