package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

var testResource = schema.GroupVersionResource{Group: networkingGroup, Version: "v1", Resource: "virtualservices"}

// version is a VirtualService whose only route gives the canary this weight.
func version(name string, resourceVersion, weight int64) *unstructured.Unstructured {
	destination := func(host string, weight int64) any {
		return map[string]any{"destination": map[string]any{"host": host}, "weight": weight}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
		"metadata": map[string]any{"namespace": "shop", "name": name, "resourceVersion": strconv.FormatInt(resourceVersion, 10)},
		"spec": map[string]any{"http": []any{map[string]any{"route": []any{
			destination("stable", 100-weight), destination("canary", weight),
		}}}},
	}}
}

// behind is a kind whose watch has brought nothing since the first list, and
// whose API server accepts every patch and counts its versions up.
func behind(t *testing.T, objects int) *kind[*virtualservice.VirtualService] {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{testResource: "VirtualServiceList"})
	var last atomic.Int64
	last.Store(10)
	client.PrependReactor("patch", "virtualservices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		var ops []struct{ Value any }
		if err := json.Unmarshal(patch.GetPatch(), &ops); err != nil {
			return true, nil, err
		}
		return true, version(patch.GetName(), last.Add(1), int64(ops[1].Value.(float64))), nil
	})
	k := newKind(client, testResource, "VirtualService", metav1.NamespaceAll, virtualservice.Parse, Options{}.hooks(func(string, string, string) {}))
	for i := range objects {
		bring(t, k, version(objectNumber(i), 1, 0))
	}
	return k
}

// bring does what the watch does.
func bring(t *testing.T, k *kind[*virtualservice.VirtualService], u *unstructured.Unstructured) {
	t.Helper()
	stripped, err := k.strip(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.informer.GetStore().Update(stripped); err != nil {
		t.Fatal(err)
	}
}

func objectNumber(i int) string { return fmt.Sprintf("cart-%d", i) }

func write(t *testing.T, k *kind[*virtualservice.VirtualService], name string, weight int64) {
	t.Helper()
	_, changed, err := k.update(context.Background(), "shop", name, func(*virtualservice.VirtualService) (jsonpatch.Patch, error) {
		return jsonpatch.Patch{jsonpatch.Add("/spec/http/0/route/1/weight", weight)}, nil
	})
	if err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
}

func assertWeight(t *testing.T, k *kind[*virtualservice.VirtualService], name string, want int64) {
	t.Helper()
	vs, err := k.get("shop", name)
	if err != nil {
		t.Fatal(err)
	}
	if got := vs.HTTP[0].Destinations[1].Weight; got != want {
		t.Errorf("%s reads %d, want %d", name, got, want)
	}
}

// A hundred canaries at once are not many; the watch may be behind by all of them.
func TestEveryWriteIsSeenHoweverManyTheWatchIsBehind(t *testing.T) {
	const objects = 500
	k := behind(t, objects)
	for i := range objects {
		write(t, k, objectNumber(i), int64(i%100+1))
	}
	for i := range objects {
		assertWeight(t, k, objectNumber(i), int64(i%100+1))
	}
}

func TestTheNewerOfWatchAndWriteIsRead(t *testing.T) {
	k := behind(t, 1)
	write(t, k, "cart-0", 30) // version 11
	bring(t, k, version("cart-0", 5, 20))
	assertWeight(t, k, "cart-0", 30)
	bring(t, k, version("cart-0", 12, 40))
	assertWeight(t, k, "cart-0", 40)
}

func TestAWriteThatIsAnsweredLateDoesNotHideALaterOne(t *testing.T) {
	k := behind(t, 1)
	k.written.keep(virtualservice.Parse(version("cart-0", 9, 90), FieldManager), k.brought)
	k.written.keep(virtualservice.Parse(version("cart-0", 8, 80), FieldManager), k.brought)
	assertWeight(t, k, "cart-0", 90)
}

func TestWritesAreForgottenOnceTheWatchHasBroughtThem(t *testing.T) {
	const objects = 50
	k := behind(t, objects)
	for i := range objects - 1 {
		write(t, k, objectNumber(i), 10)
		bring(t, k, version(objectNumber(i), 1000, 10))
	}
	gone, err := k.get("shop", objectNumber(0))
	if err != nil {
		t.Fatal(err)
	}
	k.written.of["shop/"+objectNumber(0)] = gone
	if err := k.informer.GetStore().Delete(gone); err != nil {
		t.Fatal(err)
	}
	write(t, k, objectNumber(objects-1), 10)
	if got := len(k.written.of); got != 1 {
		t.Errorf("%d writes are remembered, want the last one", got)
	}
}
