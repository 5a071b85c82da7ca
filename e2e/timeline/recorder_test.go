package timeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settled is the world before a canary: everything that a recorder finds.
func settled(t *testing.T) *apiServer {
	s := newAPIServer(t)
	for _, text := range []string{virtualServiceYAML, destinationRuleYAML, rolloutYAML, replicaSetYAML, serviceYAML, eventYAML} {
		s.write("ADDED", text)
	}
	return s
}

// recording starts a recorder that ends with the test at the latest.
func recording(t *testing.T, s *apiServer, subject Subject) *Recorder {
	t.Helper()
	r := NewRecorder(s.client, subject)
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop() })
	return r
}

func replaced(text, old, new string) string {
	if !strings.Contains(text, old) {
		panic("nothing to replace: " + old)
	}
	return strings.ReplaceAll(text, old, new)
}

func weighted(canary int) string {
	return replaced(replaced(virtualServiceYAML, "weight: 30", fmt.Sprintf("weight: %d", canary)), "weight: 70", fmt.Sprintf("weight: %d", 100-canary))
}

func available(n int) string {
	return replaced(replicaSetYAML, "availableReplicas: 4", fmt.Sprintf("availableReplicas: %d", n))
}

// soon bounds a wait that ends at once when all is well.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func waitFor(t *testing.T, r *Recorder, what string, done func(State) bool) State {
	t.Helper()
	s, err := r.Wait(soon(t), done)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return s
}

// story is the writes of a timeline in their order.
func story(tl Timeline) []string {
	var out []string
	for _, e := range tl.Entries {
		if e.Found {
			continue
		}
		what := fmt.Sprintf("%s %s", e.Fact.Kind(), e.Name)
		if e.Deleted {
			what += " deleted"
		}
		out = append(out, what)
	}
	return out
}

func TestARecorderFindsTheWorldAsItIs(t *testing.T) {
	tl := recording(t, settled(t), subsetSubject()).Stop()
	s := last(tl)
	if s.CanaryWeight != 30 || s.StableWeight != 70 || s.CanaryHash != newHash || s.StableHash != oldHash ||
		s.Rollout.Phase != "Paused" || s.Pods[newHash].Available != 4 || len(s.Events) != 0 {
		t.Errorf("state %+v", s)
	}
	if len(story(tl)) != 0 || len(tl.Entries) != 5 || len(tl.Gaps) != 0 || tl.End <= 0 {
		t.Errorf("%d entries, writes %q, gaps %q, end %s", len(tl.Entries), story(tl), tl.Gaps, tl.End)
	}
	if s.Rollout.Object.GetName() != "web" || tl.Entries[0].Object.GetKind() != "VirtualService" {
		t.Error("the objects are not kept")
	}
}

func TestWritesOfAllKindsStandInTheirOrder(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	var versions, got []uint64
	for _, c := range [][2]string{
		{"MODIFIED", available(9)}, {"MODIFIED", weighted(45)}, {"MODIFIED", destinationRuleYAML},
		{"MODIFIED", replaced(rolloutYAML, "Paused", "Healthy")}, {"ADDED", replaced(eventYAML, "web.18a", "web.18b")},
		{"MODIFIED", weighted(100)}, {"DELETED", available(0)},
	} {
		versions = append(versions, s.write(c[0], c[1]))
	}
	// A deletion is in no LIST, so Stop does not wait for it.
	waitFor(t, r, "the deletion", func(s State) bool { return len(s.Pods) == 0 })
	tl := r.Stop()
	want := []string{"ReplicaSet web-85c7d9f46", "VirtualService web", "DestinationRule web", "Rollout web", "Event web.18b",
		"VirtualService web", "ReplicaSet web-85c7d9f46 deleted"}
	if diff := cmp.Diff(want, story(tl)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, e := range tl.Entries[5:] {
		got = append(got, e.ResourceVersion)
	}
	if diff := cmp.Diff(versions, got); diff != "" {
		t.Errorf("resourceVersions: %s", diff)
	}
}

func TestWhatIsNotTheSubjectsIsLeftOut(t *testing.T) {
	s := settled(t)
	subject := subsetSubject()
	subject.CanaryService, subject.StableService = "web-canary", "web-stable"
	r := recording(t, s, subject)
	for _, text := range []string{
		replaced(virtualServiceYAML, "name: web,", "name: other,"),
		replaced(destinationRuleYAML, "name: web,", "name: other,"),
		replaced(rolloutYAML, "name: web,", "name: other,"),
		replaced(serviceYAML, "name: web-canary", "name: other"),
		replaced(replaced(replicaSetYAML, "kind: Rollout", "kind: Experiment"), "name: web-85c7d9f46", "name: experiment"),
		replaced(replaced(replicaSetYAML, "kind: Rollout, name: web", "kind: Rollout, name: other"), "name: web-85c7d9f46", "name: other"),
		replaced(replaced(eventYAML, "kind: Rollout, name: web", "kind: Pod, name: web"), "web.18a", "pod.18a"),
	} {
		s.write("ADDED", text)
	}
	s.write("MODIFIED", weighted(45))
	waitFor(t, r, "the last write", func(s State) bool { return s.CanaryWeight == 45 })
	if diff := cmp.Diff([]string{"VirtualService web"}, story(r.Stop())); diff != "" {
		t.Error(diff)
	}
}

func TestAHostLevelRecorderFollowsServicesAndNoDestinationRule(t *testing.T) {
	s := settled(t)
	s.set(s.refused, "destinationrules", true)
	r := recording(t, s, hostSubject())
	s.write("MODIFIED", replaced(serviceYAML, newHash, oldHash))
	waitFor(t, r, "the selector", func(s State) bool { return s.CanaryHash == oldHash })
}

func TestAWatchThatEndsGoesOnWhereItStopped(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	first := s.write("MODIFIED", weighted(10))
	waitFor(t, r, "the first write", func(s State) bool { return s.CanaryWeight == 10 })
	s.set(s.silent, "virtualservices", true)
	s.write("MODIFIED", weighted(20))
	s.write("MODIFIED", weighted(30))
	s.endWatches()
	s.set(s.silent, "virtualservices", false)
	s.write("MODIFIED", weighted(40))
	tl := r.Stop()
	var weights []int32
	for _, st := range tl.States() {
		if st.Entry.isWrite(KindVirtualService) {
			weights = append(weights, st.CanaryWeight)
		}
	}
	if diff := cmp.Diff([]int32{10, 20, 30, 40}, weights); diff != "" || len(tl.Gaps) > 0 {
		t.Errorf("weights: %s gaps %q", diff, tl.Gaps)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if resumed := fmt.Sprintf("virtualservices from %d ", first); !slices.Contains(s.watches, resumed) {
		t.Errorf("no watch of %sin %q", resumed, s.watches)
	}
}

func TestAForgottenHistoryIsToldAsAGap(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	waitFor(t, r, "the start", func(State) bool { return true })
	s.set(s.silent, "virtualservices", true)
	s.set(s.silent, "replicasets", true)
	s.write("MODIFIED", weighted(20))
	s.write("DELETED", replicaSetYAML)
	s.compact()
	s.endWatches()
	s.set(s.silent, "virtualservices", false)
	st := waitFor(t, r, "the present after a new LIST", func(s State) bool { return s.CanaryWeight == 20 && len(s.Pods) == 0 })
	tl := r.Stop()
	if len(tl.Gaps) == 0 || !strings.Contains(strings.Join(tl.Gaps, "\n"), "virtualservices.networking.istio.io: the server had dropped the history") {
		t.Errorf("gaps %q", tl.Gaps)
	}
	if st.Entry.Found || !slices.Contains(story(tl), "VirtualService web") || !slices.Contains(story(tl), "ReplicaSet web-85c7d9f46 deleted") {
		t.Errorf("what a later LIST shows is no change: %q", story(tl))
	}
}

func TestWhatWasDeletedDoesNotVanishAgain(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	s.write("DELETED", replicaSetYAML)
	waitFor(t, r, "the deletion", func(s State) bool { return len(s.Pods) == 0 })
	s.set(s.silent, "replicasets", true)
	s.write("ADDED", replaced(replicaSetYAML, "85c7d9f46", "abcdef777"))
	s.compact()
	s.endWatches()
	s.set(s.silent, "replicasets", false)
	waitFor(t, r, "the other ReplicaSet after a new LIST", func(s State) bool { return s.Pods["abcdef777"].Size == 20 })
	if diff := cmp.Diff([]string{"ReplicaSet web-85c7d9f46 deleted", "ReplicaSet web-abcdef777"}, story(r.Stop())); diff != "" {
		t.Error(diff)
	}
}

func TestTheManagerOfAWriteIsKept(t *testing.T) {
	s := settled(t)
	kubectl := `{manager: kubectl, operation: Apply, time: "2026-03-01T12:00:05Z", fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}}`
	plugin := `{manager: plugin, operation: Update, time: "2026-03-01T12:00:0SZ", fieldsType: FieldsV1, fieldsV1: {"f:spec": {}}}`
	by := func(second string) string {
		managers := "managedFields: [" + replaced(plugin, "0SZ", second+"Z") + ", " + kubectl + "]"
		return replaced(weighted(45), "namespace: shop", "namespace: shop, "+managers)
	}
	s.write("MODIFIED", by("03"))
	r := recording(t, s, subsetSubject())
	// Both managers wrote in second 5; the one that did it now is the plugin.
	s.write("MODIFIED", by("05"))
	m := r.Stop().Measure()
	if diff := cmp.Diff(map[Kind]map[string]int{KindVirtualService: {"plugin": 1}}, m.Writes); diff != "" {
		t.Error(diff)
	}
}

func TestAnObjectThatCannotBeReadIsToldAsAGap(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	s.write("MODIFIED", "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {http: none}}")
	s.write("MODIFIED", weighted(45))
	tl := r.Stop()
	if len(tl.Gaps) != 1 || !strings.Contains(tl.Gaps[0], "VirtualService shop/web at resourceVersion") {
		t.Errorf("gaps %q", tl.Gaps)
	}
	if last(tl).CanaryWeight != 45 {
		t.Error("the next version is not read")
	}
}

func TestStartSaysWhatItCannotList(t *testing.T) {
	s := settled(t)
	s.set(s.refused, "replicasets", true)
	r := NewRecorder(s.client, subsetSubject())
	err := r.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "list replicasets.apps in namespace shop") {
		t.Fatalf("error %v", err)
	}
	r.Stop()
	if n := len(s.watches); n != 0 {
		t.Errorf("%d watches of a recorder that did not start", n)
	}
}

func TestStartRefusesAnIncompleteSubjectAndASecondTime(t *testing.T) {
	s := settled(t)
	if err := NewRecorder(s.client, Subject{}).Start(t.Context()); err == nil {
		t.Error("an empty subject is recorded")
	}
	r := recording(t, s, subsetSubject())
	if err := r.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "started before") {
		t.Errorf("second start: %v", err)
	}
}

func TestOneWatchForEachKindFromItsList(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	for _, text := range []string{virtualServiceYAML, destinationRuleYAML, rolloutYAML, replicaSetYAML, eventYAML} {
		s.write("MODIFIED", text)
	}
	// Only an open watch can deliver what Stop waits for.
	r.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[string]int{}
	for _, w := range s.watches {
		count[w]++
	}
	want := map[string]int{
		"virtualservices from 130 ": 1, "destinationrules from 130 ": 1, "replicasets from 130 ": 1,
		"rollouts from 130 metadata.name=web":                                 1,
		"events from 130 involvedObject.kind=Rollout,involvedObject.name=web": 1,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMarksAndPhasesAreWaitedFor(t *testing.T) {
	s := settled(t)
	s.write("MODIFIED", replaced(rolloutYAML, "Paused", "Healthy"))
	r := recording(t, s, subsetSubject())
	r.Mark("go")
	done := make(chan error, 1)
	go func() {
		_, err := r.WaitPhase(soon(t), "go", "Healthy")
		done <- err
	}()
	// The old Healthy does not end the wait; the one after a change does.
	s.write("MODIFIED", replaced(rolloutYAML, "generation: 7", "generation: 8"))
	waitFor(t, r, "the new spec", func(s State) bool { return !s.Rollout.Current })
	select {
	case err := <-done:
		t.Fatalf("the wait ended early: %v", err)
	default:
	}
	s.write("MODIFIED", replaced(replaced(replaced(rolloutYAML, "generation: 7", "generation: 8"), `"7"`, `"8"`), "Paused", "Healthy"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	tl := r.Stop()
	if took, ok := tl.UntilPhase("go", "Healthy"); !ok || took <= 0 || took > tl.End {
		t.Errorf("took %s, %v", took, ok)
	}
}

func TestAWaitThatEndsSaysHowTheRolloutStands(t *testing.T) {
	r := recording(t, settled(t), subsetSubject())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.WaitPhase(ctx, "", "Healthy")
	for _, want := range []string{`phase Healthy after mark ""`, "Rollout shop/web", "context canceled", "Paused (CanaryPauseStep)",
		"canary weight 30 of 100", "canary 85c7d9f46 with 4 of 20 pods"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestStopIsFinal(t *testing.T) {
	s := settled(t)
	r := recording(t, s, subsetSubject())
	first := r.Stop()
	s.write("MODIFIED", weighted(45))
	r.Mark("late")
	second := r.Stop()
	if diff := cmp.Diff(first.States(), second.States()); diff != "" || first.End != second.End {
		t.Errorf("after Stop: %s; ends %s and %s", diff, first.End, second.End)
	}
}

func TestStopDoesNotWaitForAWatchThatIsSilent(t *testing.T) {
	s := settled(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := NewRecorder(s.client, subsetSubject())
	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}
	s.set(s.silent, "virtualservices", true)
	s.write("MODIFIED", weighted(45))
	cancel()
	begin := time.Now()
	r.Stop()
	if took := time.Since(begin); took > catchUpTime/2 {
		t.Errorf("Stop of a recorder whose context is over took %s", took)
	}
}

func TestARecorderThatWasNeverStartedIsEmpty(t *testing.T) {
	r := NewRecorder(newAPIServer(t).client, subsetSubject())
	r.Mark("early")
	if tl := r.Stop(); len(tl.Entries) != 1 || tl.End != 0 || len(tl.States()) != 2 {
		t.Errorf("timeline %+v", tl)
	}
}
