package istiod

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

func TestAWeightArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	var took []time.Duration
	for i := range 20 {
		weight := 1 + (i*7)%99
		plan := w.setWeight(t, weight)
		began := time.Now()
		w.arrives(t, plan, "the weight")
		took = append(took, time.Since(began))
		served, err := w.client.Served(rollout)
		if err != nil {
			t.Fatal(err)
		}
		if got, known := plan.CanaryWeight(served); !known || int(got) != weight {
			t.Errorf("the canary has %d, known %t, want %d", got, known, weight)
		}
	}
	slices.Sort(took)
	t.Logf("from the answered write to the served weight: median %s, longest %s of %d", took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took))
}

func TestTheWeightBeforeIsNamedWhileTheNewOneIsOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	vs, err := w.cluster.VirtualService(w.namespace, "web")
	if err != nil {
		t.Fatal(err)
	}
	// As it will be written a moment later.
	next := vs.DeepCopy()
	next.HTTP[0].Destinations[0].Weight, next.HTTP[0].Destinations[1].Weight = 75, 25
	served, err := w.client.Served(rollout)
	if err != nil {
		t.Fatal(err)
	}
	want := "istiod still serves canary 10 where 25 is written (route primary of VirtualService " + w.namespace + "/web, host " + w.host() + " port 80); " +
		"istiod still serves canary 10 where 25 is written (route primary of VirtualService " + w.namespace + "/web, host " + w.host() + " port 81)"
	if ok, waiting := w.planOf(next).Judge(served, w.endpoints(t), w.counts); ok || waiting != want {
		t.Errorf("%t, %q, want %q", ok, waiting, want)
	}
}

func TestALabelThatMovedArrivesInTheEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	// The canary's label moves to the other revision: the subset keeps its name.
	w.labels, w.counts.Canary = map[string]string{hashLabel: oldHash}, 2
	judge := func(s mesh.Served) (bool, string) { return w.plan(t).Judge(s, w.endpoints(t), w.counts) }
	w.waits(t, judge, "of "+newHash+" is still an endpoint of the canary, which is "+oldHash)
	w.patch(t, destinationRules, `[{"op":"replace","path":"/spec/subsets/1/labels/rollouts-pod-template-hash","value":"`+oldHash+`"}]`)
	w.arrives(t, w.plan(t), "the label")
}

func TestASubsetThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	w.patch(t, destinationRules, `[{"op":"remove","path":"/spec/subsets/1"}]`)
	judge := func(s mesh.Served) (bool, string) { return w.plan(t).Judge(s, w.endpoints(t), w.counts) }
	w.waits(t, judge, "cluster outbound|80|canary|"+w.host()+" is not there")
	w.patch(t, destinationRules, `[{"op":"add","path":"/spec/subsets/1","value":{"name":"canary","labels":{"rollouts-pod-template-hash":"`+newHash+`"}}}]`)
	w.arrives(t, w.plan(t), "the subset")
}

func TestAPodThatIsUnreadyLeavesTheEndpoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	unready := func(yes bool) {
		t.Helper()
		if n, err := shared.SetUnready(t.Context(), w.namespace, hashLabel+"="+newHash, yes); err != nil || n != 1 {
			t.Fatalf("%d pods, %v", n, err)
		}
	}
	unready(true)
	judge := func(s mesh.Served) (bool, string) { return w.plan(t).Judge(s, w.endpoints(t), w.counts) }
	w.waits(t, judge, "0 of 1 endpoints of the canary")
	unready(false)
	w.arrives(t, w.plan(t), "the pod")
}

func TestAVirtualServiceThatOthersDoNotSeeIsSaidToBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	w.patch(t, virtualServices, `[{"op":"add","path":"/spec/exportTo","value":["elsewhere"]}]`)
	judge := func(s mesh.Served) (bool, string) { return w.plan(t).Judge(s, w.endpoints(t), w.counts) }
	w.waits(t, judge, "without any VirtualService, not by VirtualService "+w.namespace+"/web as seen from namespace "+w.namespace)
	w.patch(t, virtualServices, `[{"op":"replace","path":"/spec/exportTo","value":["."]}]`)
	w.arrives(t, w.plan(t), "the VirtualService, seen in its own namespace only")
}

// TestIstiodIsKilledAndComesBack disturbs all tests, so it runs by itself, before the parallel ones.
func TestIstiodIsKilledAndComesBack(t *testing.T) {
	w := newWorld(t, plain())
	w.arrives(t, w.plan(t), "what was applied")
	if err := served.Kill(); err != nil {
		t.Fatal(err)
	}
	w.until(t, "an error", func(context.Context) bool {
		_, err := w.client.Served(rollout)
		return errors.Is(err, mesh.ErrUnavailable)
	})
	plan := w.setWeight(t, 33)
	if err := served.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.arrives(t, plan, "the weight that was written meanwhile")
}
