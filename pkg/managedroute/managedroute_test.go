package managedroute

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

func header(name, value string) v1alpha1.CanaryStep {
	step := &v1alpha1.SetHeaderRoute{Name: name}
	if value != "" {
		step.Match = []v1alpha1.HeaderRoutingMatch{{HeaderName: "x-user", HeaderValue: &v1alpha1.StringMatch{Exact: value}}}
	}
	return v1alpha1.CanaryStep{SetHeaderRoute: step}
}

func mirror(name, method string, percentage *int32) v1alpha1.CanaryStep {
	step := &v1alpha1.SetMirrorRoute{Name: name, Percentage: percentage}
	if method != "" {
		step.Match = []v1alpha1.RouteMatch{{Method: &v1alpha1.StringMatch{Exact: method}}}
	}
	return v1alpha1.CanaryStep{SetMirrorRoute: step}
}

func weight(n int32) v1alpha1.CanaryStep { return v1alpha1.CanaryStep{SetWeight: &n} }

// canary is a Rollout in mid-canary at that step, with hdr and mir managed.
func canary(index int32, steps ...v1alpha1.CanaryStep) *v1alpha1.Rollout {
	ro := &v1alpha1.Rollout{}
	ro.Namespace, ro.Name = "shop", "cart"
	ro.Spec.Strategy.Canary = &v1alpha1.CanaryStrategy{
		Steps:          steps,
		TrafficRouting: &v1alpha1.RolloutTrafficRouting{ManagedRoutes: []v1alpha1.MangedRoutes{{Name: "hdr"}, {Name: "mir"}}},
	}
	ro.Status = v1alpha1.RolloutStatus{StableRS: "old", CurrentPodHash: "new", CurrentStepIndex: &index}
	return ro
}

// described is "name=header value" or "name=mirror percentage" of each route.
func described(s Set) []string {
	var out []string
	for _, route := range s.Routes() {
		switch {
		case route.Mirror != nil:
			out = append(out, route.Name+"=mirror "+strings.Repeat("I", int(route.Mirror.Percentage/25)))
		default:
			out = append(out, route.Name+"="+route.Header[0].Value.Exact)
		}
	}
	return out
}

func TestRoutesFollowFromTheStepsUpToTheCurrentOne(t *testing.T) {
	half := int32(50)
	steps := []v1alpha1.CanaryStep{weight(10), header("hdr", "a"), mirror("mir", "GET", &half), header("hdr", "b"), mirror("mir", "", nil), header("hdr", "")}
	for sentence, tc := range map[string]struct {
		ro   *v1alpha1.Rollout
		want []string
	}{
		"a step that lies ahead makes no route":       {canary(0, steps...), nil},
		"the current step makes its route":            {canary(1, steps...), []string{"hdr=a"}},
		"routes stand in the order of managedRoutes":  {canary(2, mirror("mir", "GET", nil), header("hdr", "a"), weight(1)), []string{"hdr=a", "mir=mirror IIII"}},
		"a percentage is kept":                        {canary(2, steps...), []string{"hdr=a", "mir=mirror II"}},
		"the later step of a name wins":               {canary(3, steps...), []string{"hdr=b", "mir=mirror II"}},
		"a mirror step without a match removes":       {canary(4, steps...), []string{"hdr=b"}},
		"a header step without a match removes":       {canary(5, steps...), nil},
		"routes stay until the end of the steps":      {canary(2, weight(1), header("hdr", "a")), []string{"hdr=a"}},
		"a mirror of the same name replaces a header": {canary(1, header("mir", "a"), mirror("mir", "GET", nil)), []string{"mir=mirror IIII"}},
		"an index beyond the steps is their end":      {canary(99, header("hdr", "a")), []string{"hdr=a"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			set, err := FromRollout(tc.ro)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, described(set)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestARolloutThatIsNotUnderWayHasNoRoutes(t *testing.T) {
	for sentence, change := range map[string]func(*v1alpha1.Rollout){
		"aborted":              func(ro *v1alpha1.Rollout) { ro.Status.Abort = true },
		"promoted in full":     func(ro *v1alpha1.Rollout) { ro.Status.PromoteFull = true },
		"fully promoted":       func(ro *v1alpha1.Rollout) { ro.Status.CurrentPodHash = "old" },
		"its first deployment": func(ro *v1alpha1.Rollout) { ro.Status.StableRS = "" },
		"no canary":            func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary = nil },
		"no traffic routing":   func(ro *v1alpha1.Rollout) { ro.Spec.Strategy.Canary.TrafficRouting = nil },
	} {
		t.Run(sentence, func(t *testing.T) {
			ro := canary(1, weight(10), header("hdr", "a"))
			if before, err := FromRollout(ro); err != nil || len(before.Routes()) != 1 {
				t.Fatalf("under way: %v, %v", before.Routes(), err)
			}
			change(ro)
			set, err := FromRollout(ro)
			if err != nil || len(set.Routes()) != 0 {
				t.Errorf("routes %v, error %v", set.Routes(), err)
			}
		})
	}
}

func TestAStepThatCannotBeDoneNamesItselfAndTheRemedy(t *testing.T) {
	both := header("hdr", "a")
	both.SetHeaderRoute.Match[0].HeaderValue.Prefix = "b"
	nameless := header("hdr", "a")
	nameless.SetHeaderRoute.Match[0].HeaderName = ""
	empty := mirror("mir", "GET", nil)
	empty.SetMirrorRoute.Match[0].Path = &v1alpha1.StringMatch{}
	much, little := int32(101), int32(-1)
	for sentence, tc := range map[string]struct {
		step v1alpha1.CanaryStep
		want []string
	}{
		"a name that is not managed":    {header("other", "a"), []string{"Rollout shop/cart", "steps[1].setHeaderRoute.name", "managedRoutes: add it there"}},
		"a mirror that is not managed":  {mirror("other", "GET", nil), []string{"steps[1].setMirrorRoute.name", "managedRoutes"}},
		"two kinds of match at once":    {both, []string{"setHeaderRoute.match[0].headerValue", "keep one"}},
		"a header without a name":       {nameless, []string{"setHeaderRoute.match[0].headerName"}},
		"a path that says nothing":      {empty, []string{"setMirrorRoute.match[0].path", "exact, prefix and regex"}},
		"more than everything is to go": {mirror("mir", "GET", &much), []string{"setMirrorRoute.percentage", "0 to 100"}},
		"less than nothing is to go":    {mirror("mir", "GET", &little), []string{"setMirrorRoute.percentage", "0 to 100"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := FromRollout(canary(1, weight(1), tc.step))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
			ahead, err := FromRollout(canary(0, weight(1), tc.step))
			if err != nil || len(ahead.Routes()) != 0 {
				t.Errorf("the step lies ahead: %v", err)
			}
			aborted := canary(1, weight(1), tc.step)
			aborted.Status.Abort = true
			if _, err := FromRollout(aborted); err != nil {
				t.Errorf("a step that cannot be done stops an abort: %v", err)
			}
		})
	}
}

func TestAnEmptyHeaderValueMeansThatTheHeaderIsThere(t *testing.T) {
	step := header("hdr", "a")
	step.SetHeaderRoute.Match[0].HeaderValue = nil
	set, err := FromRollout(canary(0, step))
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Routes()[0].Header[0]; got.Name != "x-user" || got.Value.Exact+got.Value.Prefix+got.Value.Regex != "" {
		t.Errorf("match %+v", got)
	}
}

func TestASteppedCallIsTakenInThoughTheRolloutDoesNotShowItYet(t *testing.T) {
	set, err := FromRollout(canary(0, weight(10), header("hdr", "a")))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Header(header("hdr", "b").SetHeaderRoute); err != nil {
		t.Fatal(err)
	}
	if err := set.Mirror(mirror("mir", "GET", nil).SetMirrorRoute); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"hdr=b", "mir=mirror IIII"}, described(set)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := set.Header(nil); err != nil {
		t.Error(err)
	}
}

func TestTheLastStepOfANameDecidesWhateverCameBefore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := []string{"hdr", "mir"}
		want := map[string]string{}
		var steps []v1alpha1.CanaryStep
		index := rapid.IntRange(0, 8).Draw(rt, "index")
		for i := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			value := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "value")
			steps = append(steps, header(name, value))
			if i <= index {
				want[name] = value
			}
		}
		set, err := FromRollout(canary(int32(index), steps...))
		if err != nil {
			rt.Fatal(err)
		}
		var expected []string
		for _, name := range names {
			if want[name] != "" {
				expected = append(expected, name+"="+want[name])
			}
		}
		if diff := cmp.Diff(expected, described(set)); diff != "" {
			rt.Fatalf("-want +got:\n%s", diff)
		}
	})
}
