package timeline

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// object reads an object as the API server's JSON is read: numbers that are
// whole become int64.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return obj
}

const virtualServiceYAML = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, resourceVersion: "11"}
spec:
  hosts: [web]
  http:
  - name: primary
    retries: {attempts: 3}
    route:
    - destination: {host: web, subset: stable, port: {number: 80}}
      weight: 70
      headers: {request: {set: {x: y}}}
    - destination: {host: web, subset: canary}
      weight: 30
  - redirect: {uri: /}
  tls:
  - match: [{sniHosts: [web]}]
    route: [{destination: {host: web}}]
  tcp:
  - route: [{destination: {host: web}, weight: 100}]
`

const rolloutYAML = `
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop, resourceVersion: "12", generation: 7}
spec:
  replicas: 20
  strategy: {canary: {steps: [{setWeight: 1}, {pause: {}}, {setWeight: 100}]}}
status:
  phase: Paused
  message: CanaryPauseStep
  observedGeneration: "7"
  currentStepIndex: 1
  currentPodHash: 85c7d9f46
  stableRS: 6f4b8c9d7
  abort: true
  canary: {weights: {canary: {weight: 1, podTemplateHash: 85c7d9f46}, stable: {weight: 99}, verified: false}}
`

const replicaSetYAML = `
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-85c7d9f46
  namespace: shop
  resourceVersion: "13"
  labels: {rollouts-pod-template-hash: 85c7d9f46}
  ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web, uid: u, controller: true}]
spec: {replicas: 20}
status: {replicas: 9, readyReplicas: 5, availableReplicas: 4}
`

const destinationRuleYAML = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop, resourceVersion: "14"}
spec:
  host: web
  subsets:
  - {name: canary, labels: {app: web, rollouts-pod-template-hash: 85c7d9f46}, trafficPolicy: {}}
  - {name: stable, labels: {rollouts-pod-template-hash: 6f4b8c9d7}}
  - {name: legacy}
`

const serviceYAML = `
apiVersion: v1
kind: Service
metadata: {name: web-canary, namespace: shop, resourceVersion: "15"}
spec: {selector: {app: web, rollouts-pod-template-hash: 85c7d9f46}}
`

const eventYAML = `
apiVersion: v1
kind: Event
metadata: {name: web.18a, namespace: shop, resourceVersion: "16"}
involvedObject: {kind: Rollout, name: web}
type: Warning
reason: CanaryWeightCapped
message: canary held at 10 of 100
count: 1
`

func TestObjectsAreReadAsTheAPIServerGivesThem(t *testing.T) {
	no := false
	rollout := object(t, rolloutYAML)
	for sentence, c := range map[string]struct {
		read func(*unstructured.Unstructured) (Fact, error)
		obj  *unstructured.Unstructured
		want Fact
	}{
		"a VirtualService: all protocols, names where there are some": {readVirtualService, object(t, virtualServiceYAML), VirtualService{Routes: []Route{
			{Name: "primary", Destinations: []Destination{{"web", "stable", 70}, {"web", "canary", 30}}},
			{Name: "http[1]"},
			{Name: "tls[0]", Destinations: []Destination{{Host: "web"}}},
			{Name: "tcp[0]", Destinations: []Destination{{Host: "web", Weight: 100}}},
		}}},
		"a VirtualService without a spec": {readVirtualService, object(t, "{apiVersion: networking.istio.io/v1, kind: VirtualService}"), VirtualService{}},
		"a DestinationRule: subsets with and without the label": {readDestinationRule, object(t, destinationRuleYAML),
			DestinationRule{Host: "web", Hashes: map[string]string{"canary": newHash, "stable": oldHash, "legacy": ""}}},
		"a Service":    {readService, object(t, serviceYAML), Service{Hash: newHash}},
		"a ReplicaSet": {readReplicaSet, object(t, replicaSetYAML), ReplicaSet{Hash: newHash, Pods: Pods{Size: 20, Ready: 5, Available: 4}}},
		"a ReplicaSet without replicas has one": {readReplicaSet, object(t, "{apiVersion: apps/v1, kind: ReplicaSet}"),
			ReplicaSet{Pods: Pods{Size: 1}}},
		"a Rollout": {readRollout, rollout, Rollout{
			Phase: "Paused", Message: "CanaryPauseStep", StepIndex: 1, Steps: 3, DesiredWeight: 1, Verified: &no, Abort: true,
			PodHash: newHash, StableRS: oldHash, Replicas: 20, Current: true, Object: rollout,
		}},
		"an Event": {readEvent, object(t, eventYAML), Event{"Warning", "CanaryWeightCapped", "canary held at 10 of 100"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := c.read(c.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestARolloutWithoutStatusHasNoStepAndIsNotCurrent(t *testing.T) {
	got, err := readRollout(object(t, "{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 1}}"))
	if err != nil {
		t.Fatal(err)
	}
	r := got.(Rollout)
	if r.StepIndex != -1 || r.Current || r.Verified != nil || r.Replicas != 1 {
		t.Errorf("%+v", r)
	}
}

func TestFieldsOfAnotherTypeAreAnError(t *testing.T) {
	for sentence, c := range map[string]struct {
		read func(*unstructured.Unstructured) (Fact, error)
		text string
	}{
		"a route that is text":           {readVirtualService, "{kind: VirtualService, spec: {http: [{route: primary}]}}"},
		"a weight that is text":          {readVirtualService, "{kind: VirtualService, spec: {http: [{route: [{weight: ten}]}]}}"},
		"subsets that are no list":       {readDestinationRule, "{kind: DestinationRule, spec: {subsets: {a: b}}}"},
		"a selector that is a list":      {readService, "{kind: Service, spec: {selector: [a]}}"},
		"replicas that are text":         {readReplicaSet, "{kind: ReplicaSet, spec: {replicas: many}}"},
		"a generation that is no text":   {readRollout, "{kind: Rollout, status: {observedGeneration: {}}}"},
		"a message that is not one text": {readEvent, "{kind: Event, message: [a, b]}"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if fact, err := c.read(object(t, c.text)); err == nil {
				t.Errorf("read as %+v", fact)
			}
		})
	}
}

func managed(manager, operation string, second int, fields string) metav1.ManagedFieldsEntry {
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC))
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Time: &at, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

func TestTheWriterIsToldByManagedFields(t *testing.T) {
	apply, update := managed("kubectl", "Apply", 5, `{"f:spec":{}}`), managed("plugin", "Update", 3, `{"f:spec":{}}`)
	for sentence, c := range map[string]struct {
		before, now []metav1.ManagedFieldsEntry
		want        string
	}{
		"nobody without managedFields":       {nil, nil, ""},
		"the only one":                       {nil, []metav1.ManagedFieldsEntry{apply}, "kubectl"},
		"the newest of an object seen first": {nil, []metav1.ManagedFieldsEntry{update, apply}, "kubectl"},
		"the one whose entry is newer than in the version before": {
			[]metav1.ManagedFieldsEntry{apply, update}, []metav1.ManagedFieldsEntry{apply, managed("plugin", "Update", 5, `{"f:spec":{}}`)}, "plugin"},
		"the one who came to own other fields within a second": {
			[]metav1.ManagedFieldsEntry{apply, update}, []metav1.ManagedFieldsEntry{apply, managed("plugin", "Update", 3, `{"f:metadata":{}}`)}, "plugin"},
		"the newest when nothing changed":           {[]metav1.ManagedFieldsEntry{update, apply}, []metav1.ManagedFieldsEntry{update, apply}, "kubectl"},
		"an entry without a time is older than any": {nil, []metav1.ManagedFieldsEntry{update, {Manager: "ancient"}}, "plugin"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := writer(c.before, c.now); got != c.want {
				t.Errorf("writer = %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzObjects reads any JSON object as each kind and shows what comes of it.
func FuzzObjects(f *testing.F) {
	for _, text := range []string{virtualServiceYAML, rolloutYAML, replicaSetYAML, destinationRuleYAML, serviceYAML, eventYAML, "{}",
		"{spec: {http: [{route: [{weight: 1e300}, {weight: -2147483648}, null]}, null], replicas: -1}}"} {
		data, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			return
		}
		obj := &unstructured.Unstructured{Object: content}
		var entries []Entry
		for i, src := range sources(subsetSubject()) {
			src.ours(obj)
			if fact, err := src.read(obj); err == nil {
				entries = append(entries, Entry{ResourceVersion: uint64(i + 1), At: ms(i), Name: "web", Fact: fact})
			}
		}
		tl := New(subsetSubject(), time.Time{}, ms(10), entries)
		var b bytes.Buffer
		if err := SideBySide(&b, tl, tl, [2]string{}); err != nil {
			t.Fatal(err)
		}
		if err := Print(io.Discard, tl); err != nil {
			t.Fatal(err)
		}
		for _, s := range Violations(tl, Limits{Rule: func(State) int32 { return 0 }, Deadline: 1}) {
			if strings.Contains(s, "%!") {
				t.Errorf("a sentence with a hole: %s", s)
			}
		}
	})
}
