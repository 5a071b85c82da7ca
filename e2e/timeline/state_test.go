package timeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func last(t Timeline) State {
	states := t.States()
	return states[len(states)-1]
}

// hostSubject is a host-level split between two Services.
func hostSubject() Subject {
	return Subject{Namespace: "shop", Rollout: "web", VirtualServices: []string{"web"}, CanaryService: "web-canary", StableService: "web-stable"}
}

func destination(host, subset string, weight int32) Destination {
	return Destination{Host: host, Subset: subset, Weight: weight}
}

func TestTheWeightsOfTheWorstRouteCount(t *testing.T) {
	type weights struct{ Canary, Stable int32 }
	for sentence, c := range map[string]struct {
		subject Subject
		routes  []Route
		want    weights
	}{
		"one route of two subsets": {
			subsetSubject(), []Route{splitRoute("primary", 30, 70)}, weights{30, 70}},
		"two routes that differ: each side at its highest": {
			subsetSubject(), []Route{splitRoute("a", 30, 70), splitRoute("b", 10, 90)}, weights{30, 90}},
		"a negative weight is shown as it is": {
			subsetSubject(), []Route{splitRoute("a", -40, 140)}, weights{-40, 140}},
		"only the named route counts when routes are named": {
			func() Subject { s := subsetSubject(); s.Routes = []string{"b"}; return s }(),
			[]Route{splitRoute("a", 30, 70), splitRoute("b", 10, 90)}, weights{10, 90}},
		"a header route names the canary alone and does not count": {
			subsetSubject(),
			[]Route{{Name: "header", Destinations: []Destination{destination("web", "canary", 100)}}, splitRoute("primary", 0, 100)},
			weights{0, 100}},
		"the same subset names on a foreign host are strangers": {
			subsetSubject(),
			[]Route{{Name: "x", Destinations: []Destination{destination("api", "stable", 10), destination("api", "canary", 90)}}},
			weights{0, 0}},
		"the full name of the host is the same host": {
			subsetSubject(),
			[]Route{{Name: "x", Destinations: []Destination{destination("web.shop.svc.cluster.local", "stable", 60), destination("web", "canary", 40)}}},
			weights{40, 60}},
		"a side on two ports adds up": {
			subsetSubject(),
			[]Route{{Name: "x", Destinations: []Destination{destination("web", "stable", 60), destination("web", "canary", 15), destination("web", "canary", 25)}}},
			weights{40, 60}},
		"a foreign destination takes its part and is no side": {
			subsetSubject(),
			[]Route{{Name: "x", Destinations: []Destination{destination("web", "stable", 60), destination("web", "canary", 20), destination("legacy", "", 20)}}},
			weights{20, 60}},
		"a host-level split goes by Service": {
			hostSubject(),
			[]Route{{Name: "x", Destinations: []Destination{destination("web-stable.shop", "", 75), destination("web-canary", "", 25)}}},
			weights{25, 75}},
		"a Service of that name in another namespace is a stranger": {
			hostSubject(),
			[]Route{{Name: "x", Destinations: []Destination{destination("web-stable.other", "", 75), destination("web-canary.other", "", 25)}}},
			weights{0, 0}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newScript()
			s.subject = c.subject
			got := last(s.hashes(newHash, newHash).at(5).add("web", VirtualService{Routes: c.routes}).timeline(10))
			if diff := cmp.Diff(c.want, weights{got.CanaryWeight, got.StableWeight}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARouteIsSummedUpWithItsLowestWeight(t *testing.T) {
	route := Route{Name: "primary", Destinations: []Destination{
		destination("web", "stable", 140), destination("web", "canary", -50), destination("legacy", "", 20)}}
	got := last(healthy().at(5).add("web", VirtualService{Routes: []Route{route}}).timeline(10)).Routes
	want := []RouteState{{VirtualService: "web", Route: "primary", Canary: -50, Stable: 140, Sum: 110, Lowest: -50}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheHashComesFromWhatTheRoutingNames(t *testing.T) {
	byHost := newScript()
	byHost.subject = hostSubject()
	byHost.add("web-canary", Service{Hash: oldHash}).add("web-stable", Service{Hash: newHash})
	for sentence, c := range map[string]struct {
		script         *script
		canary, stable string
	}{
		"from the subsets' label in a subset-level split": {newScript().hashes(oldHash, newHash), oldHash, newHash},
		"from the Services' selector in a host-level one": {byHost, oldHash, newHash},
		"nowhere when the DestinationRule is not there":   {newScript(), "", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := last(c.script.timeline(10))
			if s.CanaryHash != c.canary || s.StableHash != c.stable {
				t.Errorf("canary %q, stable %q", s.CanaryHash, s.StableHash)
			}
		})
	}
}

func (s *script) deleted() *script {
	s.entries[len(s.entries)-1].Deleted = true
	return s
}

func TestWhatIsDeletedIsGone(t *testing.T) {
	s := healthy().at(10).weight(0).deleted().hashes("", "").deleted().
		pods(oldHash, 2, 2).deleted().phase("Healthy", "").deleted().event("Old", "").deleted()
	got := last(s.timeline(20))
	if len(got.Routes) != 0 || got.CanaryHash != "" || got.StableHash != "" || got.Rollout.Phase != "" || len(got.Events) != 0 {
		t.Errorf("state %+v", got)
	}
	if diff := cmp.Diff(map[string]Pods{newHash: {20, 20, 20}}, got.Pods); diff != "" {
		t.Error(diff)
	}
}

func TestStatesDoNotChangeEachOther(t *testing.T) {
	tl := healthy().at(10).event("A", "").at(20).pods(oldHash, 2, 1).event("B", "").timeline(30)
	states := tl.States()
	var events []int
	var available []int32
	for _, s := range states {
		events = append(events, len(s.Events))
		available = append(available, s.Pods[oldHash].Available)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 2}, events); diff != "" {
		t.Errorf("events: %s", diff)
	}
	if diff := cmp.Diff([]int32{2, 2, 1, 1}, available); diff != "" {
		t.Errorf("available: %s", diff)
	}
	if first, second := states[1].Events[0].Reason, states[3].Events[1].Reason; first != "A" || second != "B" {
		t.Errorf("events %q, %q", first, second)
	}
}

func TestAnEmptyTimelineHasOneEmptyState(t *testing.T) {
	states := New(subsetSubject(), healthy().timeline(0).Start, ms(10), nil).States()
	if len(states) != 1 || states[0].Max != 100 || states[0].CanaryHash != "" {
		t.Errorf("states %+v", states)
	}
}

func TestTrafficTowardARevision(t *testing.T) {
	for sentence, c := range map[string]struct {
		script *script
		hash   string
		want   float64
	}{
		"the canary's weight when the canary names it":          {healthy().hashes(oldHash, newHash).weight(30), oldHash, 30},
		"the stable's weight when the stable names it":          {healthy().hashes(oldHash, newHash).weight(30), newHash, 70},
		"all when both name it, as after a promotion":           {healthy().weight(30), newHash, 100},
		"none when neither does":                                {healthy().weight(30), oldHash, 0},
		"none for no hash, even when the routing names none":    {healthy().hashes("", "").weight(30), "", 0},
		"never more than all, though routes that differ add up": {healthy().add("web", VirtualService{Routes: []Route{splitRoute("a", 80, 20), splitRoute("b", 10, 90)}}), newHash, 100},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := last(c.script.timeline(10)).Toward(c.hash); got != c.want {
				t.Errorf("Toward(%q) = %v, want %v", c.hash, got, c.want)
			}
		})
	}
}

func TestTheShareOfThePods(t *testing.T) {
	for sentence, c := range map[string]struct {
		available, replicas int32
		want                float64
	}{
		"2 of 20 pods can take a tenth":        {2, 20, 10},
		"all pods can take all":                {20, 20, 100},
		"more pods than replicas take no more": {24, 20, 100},
		"no pod takes nothing":                 {0, 20, 0},
		"nobody asked for pods":                {0, 0, 100},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := State{Pods: map[string]Pods{"h": {Available: c.available}}, Rollout: Rollout{Replicas: c.replicas}}
			if got := s.Share("h"); got != c.want {
				t.Errorf("Share = %v, want %v", got, c.want)
			}
		})
	}
}

func TestWeightsOfAThousandAreScaledToPercent(t *testing.T) {
	if got := (State{Max: 1000}).Percent(25); got != 2.5 {
		t.Errorf("25 of 1000 = %v percent", got)
	}
	if got := (State{}).Percent(25); got != 0 {
		t.Errorf("a state without max: %v percent", got)
	}
}

func TestAPhaseCountsOnlyForThePresentSpec(t *testing.T) {
	s := State{Rollout: Rollout{Phase: "Healthy"}}
	if Healthy(s) {
		t.Error("Healthy though the status speaks of an older spec")
	}
	if s.Rollout.Current = true; !Healthy(s) || s.Is("Degraded") {
		t.Error("not Healthy, or Degraded, though the status is current")
	}
}
