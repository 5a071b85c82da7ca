package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestAGateLetsThroughNoMorePodsThanItsLimit(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	gate, err := shared.Gate(ctx, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Limit("app=web", 2); err != nil {
		t.Fatal(err)
	}
	createReplicaSet(ctx, t, namespace, "web", 4, map[string]string{Gated: "true"})
	createReplicaSet(ctx, t, namespace, "free", 3, map[string]string{Gated: "true"})
	awaitAvailable(ctx, t, namespace, "free", 3)
	awaitAvailable(ctx, t, namespace, "web", 2)
	time.Sleep(2 * time.Second) // four times what a pod needs to be ready
	awaitAvailable(ctx, t, namespace, "web", 2)

	if err := gate.Limit("app=web", -1); err != nil {
		t.Fatal(err)
	}
	awaitAvailable(ctx, t, namespace, "web", 4)
	if err := gate.Close(); err != nil {
		t.Error(err)
	}
}

func TestADelayOfAGateTakesThePlaceOfThatOfTheTemplate(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	namespace := scenario(t, ctx)
	gate, err := shared.Gate(ctx, namespace)
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Delay("app=late", 3*time.Second); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	createReplicaSet(ctx, t, namespace, "late", 2, map[string]string{Gated: "true", ReadyAfter: "10ms"})
	awaitAvailable(ctx, t, namespace, "late", 2)
	if took := time.Since(began); took < 2900*time.Millisecond {
		t.Errorf("available after %s, want 3 s", took)
	}
}

func TestASelectorThatIsNoneIsRefusedByName(t *testing.T) {
	gate := &Gate{namespace: "shop", wake: make(chan struct{}, 1)}
	err := gate.Limit("app in", 1)
	if err == nil || !contains(err.Error(), "shop", `"app in"`) {
		t.Errorf("Limit with a broken selector: %v", err)
	}
}

func TestChoose(t *testing.T) {
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	two := gateRule{text: "web", selector: web, limit: 2}
	tests := map[string]struct {
		pods    []*corev1.Pod
		rules   []gateRule
		through map[types.UID]bool
		want    []string
	}{
		"without rules every gated pod passes, oldest first":     {pods: pods("b:true@2", "a:true@2", "c:true@1"), want: []string{"c", "a", "b"}},
		"pods without the annotation are none of a gate's":       {pods: pods("a:@1")},
		"a limit counts the pods that have passed":               {pods: pods("a:open@1", "b:true@2", "c:true@3"), rules: []gateRule{two}, want: []string{"b"}},
		"a pod let through counts though its annotation is old":  {pods: pods("a:true@1", "b:true@2", "c:true@3"), rules: []gateRule{two}, through: map[types.UID]bool{"a": true}, want: []string{"b"}},
		"a pod that is being deleted makes room and cannot pass": {pods: pods("a:open@1-", "b:open@2", "c:true@3", "d:true@4-"), rules: []gateRule{two}, want: []string{"c"}},
		"a limit of none lets nothing through":                   {pods: pods("a:true@1"), rules: []gateRule{{selector: web}}},
		"a rule for other pods does not matter":                  {pods: pods("a:true@1"), rules: []gateRule{{selector: labels.SelectorFromSet(labels.Set{"app": "db"})}}, want: []string{"a"}},
		"of two rules that match the later counts":               {pods: pods("a:true@1"), rules: []gateRule{{selector: web}, two}, want: []string{"a"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range choose(tc.pods, tc.rules, tc.through) {
				got = append(got, c.pod.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pods let through (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChooseKeepsLimitsWhateverThePodsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 6).Draw(t, "limit")
		states := rapid.SliceOfN(rapid.SampledFrom([]string{"", "true", "open", "true-", "open-"}), 0, 12).Draw(t, "states")
		var all []*corev1.Pod
		inside, waiting := 0, 0
		for i, state := range states {
			annotation, deleted := strings.CutSuffix(state, "-")
			all = append(all, podOf(fmt.Sprint("p", i), annotation, i, deleted))
			switch state {
			case "open":
				inside++
			case "true":
				waiting++
			}
		}
		rule := gateRule{selector: labels.Everything(), limit: limit}
		got := len(choose(all, []gateRule{rule}, nil))
		if want := min(waiting, max(0, limit-inside)); got != want {
			t.Errorf("%d pods let through, want %d: limit %d, %d inside, %d waiting", got, want, limit, inside, waiting)
		}
	})
}

// pods reads pods from texts name:annotation@age, with "-" behind for one that
// is being deleted.
func pods(texts ...string) []*corev1.Pod {
	var all []*corev1.Pod
	for _, text := range texts {
		text, deleted := strings.CutSuffix(text, "-")
		name, rest, _ := strings.Cut(text, ":")
		state, age, _ := strings.Cut(rest, "@")
		var seconds int
		fmt.Sscan(age, &seconds)
		all = append(all, podOf(name, state, seconds, deleted))
	}
	return all
}

func podOf(name, state string, seconds int, deleted bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web"},
		CreationTimestamp: metav1.Unix(int64(seconds), 0),
	}}
	if state != "" {
		pod.Annotations = map[string]string{Gated: state}
	}
	if deleted {
		now := metav1.Now()
		pod.DeletionTimestamp = &now
	}
	return pod
}
