package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// watching is an access to an istio that is ready, at weight 20.
func watching(t *testing.T, s *istio) *access {
	t.Helper()
	a, g, _ := newAccess(t, &bytes.Buffer{})
	g.become(s.URL, nil)
	if err := setWeight(t, a, 20); err != nil {
		t.Fatal(err)
	}
	return a
}

// setWeight is one call of the controller.
func setWeight(t *testing.T, a *access, weight int64) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := a.ready(ctx); err != nil {
		return err
	}
	_, _, err := a.current.Load().virtualServices.update(ctx, "shop", "cart", func(*virtualservice.VirtualService) (jsonpatch.Patch, error) {
		return jsonpatch.Patch{jsonpatch.Add("/spec/http/0/route/1/weight", weight)}, nil
	})
	return err
}

// longAgo lets the last start be one that is not too near for another.
func longAgo(a *access) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current.Load().startedAt = time.Now().Add(-startPause)
}

func readsWeight(t *testing.T, a *access, want int64) {
	t.Helper()
	assertWeight(t, a.current.Load().virtualServices, "cart", want)
}

func versionInUse(a *access) string { return a.current.Load().virtualServices.gvr.Version }

// comes fails the test when something does not come to hold.
func comes(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come: %s", what)
		}
	}
}

// openWatches are those of the two kinds in these versions.
func openWatches(virtualServices, destinationRules string) []string {
	open := []string{"1 watch " + virtualServices + "/virtualservices", "1 watch " + destinationRules + "/destinationrules"}
	slices.Sort(open)
	return open
}

func assertNamed(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}

func TestAWriteInAVersionThatIsNotServedAnyMoreIsFollowedByOneInAnother(t *testing.T) {
	s := newIstio(t)
	s.serve(map[string][]string{"v1": both, "v1beta1": both})
	a := watching(t, s)
	first := a.current.Load()
	longAgo(a)
	before := s.requests()
	for range 3 {
		if err := call(t, a); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(before, s.requests()); diff != "" {
		t.Errorf("in the normal course it is asked (-before +after):\n%s", diff)
	}

	s.mu.Lock()
	s.late = true
	s.mu.Unlock()
	s.serve(map[string][]string{"v1beta1": both})
	err := setWeight(t, a, 30)
	assertNamed(t, err, "writing VirtualService shop/cart", "does not serve virtualservices in networking.istio.io/v1 any more",
		"at the next call it is asked", "could not find the requested resource")
	if apierrors.IsNotFound(err) {
		t.Errorf("%v is the NotFound of an object", err)
	}
	readsWeight(t, a, 20)

	if err := call(t, a); err != nil { // ten at once
		t.Fatal(err)
	}
	readsWeight(t, a, 20)
	if err := setWeight(t, a, 40); err != nil || s.stored() != 40 {
		t.Errorf("stored is %d, error %v", s.stored(), err)
	}
	readsWeight(t, a, 40)
	want := map[string]int{"resources of v1": 2, "resources of v1beta1": 2, "list v1beta1/virtualservices": 1, "list v1beta1/destinationrules": 1}
	got := s.requests()
	for request, n := range want {
		if got[request] != n {
			t.Errorf("%q was asked %d times, want %d", request, got[request], n)
		}
	}
	comes(t, "only what is served is watched", func() bool { return cmp.Equal(s.watches(), openWatches("v1beta1", "v1beta1")) })
	comes(t, "the informers before end", func() bool {
		return first.life.Err() != nil && first.virtualServices.informer.IsStopped() && first.destinationRules.informer.IsStopped()
	})

	s.serve(map[string][]string{"v1": both, "v1beta1": both})
	if err := setWeight(t, a, 50); err != nil || s.stored() != 50 || versionInUse(a) != "v1beta1" {
		t.Errorf("with v1 back stored is %d by way of %s, error %v", s.stored(), versionInUse(a), err)
	}
}

func TestAWatchOfAVersionThatIsNotServedAnyMoreIsFollowedWithoutACall(t *testing.T) {
	for lost, left := range map[string]map[string][]string{
		"VirtualService":  {"v1": {"destinationrules"}, "v1alpha3": both},
		"DestinationRule": {"v1": {"virtualservices"}, "v1alpha3": both},
	} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			s := newIstio(t)
			s.serve(map[string][]string{"v1": both, "v1alpha3": both})
			a := watching(t, s)
			s.serve(left)
			s.endWatches()
			want := openWatches("v1alpha3", "v1")
			if lost == "DestinationRule" {
				want = openWatches("v1", "v1alpha3")
			}
			comes(t, strings.Join(want, ", "), func() bool { return cmp.Equal(s.watches(), want) })
			comes(t, "another mesh is in use", func() bool { return a.current.Load().unserved() == nil })
			if err := setWeight(t, a, 70); err != nil || s.stored() != 70 {
				t.Errorf("stored is %d, error %v", s.stored(), err)
			}
		})
	}
}

func TestWithoutAnyVersionEveryCallSaysSoUntilOneIsBack(t *testing.T) {
	s := newIstio(t)
	a := watching(t, s)
	longAgo(a)
	s.serve(nil)
	assertNamed(t, setWeight(t, a, 30), "any more")
	for range 2 {
		assertNamed(t, setWeight(t, a, 30), "does not serve VirtualService in networking.istio.io", "does not serve DestinationRule",
			"install Istio's CRDs; it is tried again at the next call")
	}
	readsWeight(t, a, 20)
	s.serve(map[string][]string{"v1": {"virtualservices"}})
	comes(t, "only one kind is missing", func() bool {
		err := setWeight(t, a, 30)
		return err != nil && strings.Contains(err.Error(), "DestinationRule") && !strings.Contains(err.Error(), "VirtualService")
	})
	s.serve(map[string][]string{"v1": both})
	comes(t, "a write", func() bool { return setWeight(t, a, 30) == nil })
	readsWeight(t, a, 30)
}

// So it is for a moment, most of all where there are several API servers.
func TestAnAPIServerThatSaysOtherThanItDoesIsAskedOnceInAWhile(t *testing.T) {
	s := newIstio(t)
	s.serve(map[string][]string{"v1": both, "v1beta1": both})
	a := watching(t, s)
	s.mu.Lock()
	s.serves = map[string][]string{"v1beta1": both}
	s.mu.Unlock()
	longAgo(a)
	began := time.Now()
	assertNamed(t, setWeight(t, a, 30), "writing VirtualService", "any more")
	assertNamed(t, call(t, a), "does not serve", "in networking.istio.io/v1 any more")
	for range 50 {
		if err := call(t, a); err == nil {
			t.Fatal("ready, though what it watches is not served")
		}
	}
	if asked, most := s.count("resources of v1")-1, int(time.Since(began)/startPause)+1; asked < 1 || asked > most {
		t.Errorf("it was asked %d times in %s", asked, time.Since(began))
	}
	s.serve(map[string][]string{"v1beta1": both})
	comes(t, "a write", func() bool { return setWeight(t, a, 40) == nil })
	comes(t, "only what is served is watched", func() bool { return cmp.Equal(s.watches(), openWatches("v1beta1", "v1beta1")) })
}

func TestAStartAfterAMeshThatIsUnservedKeepsItsDistance(t *testing.T) {
	gone := errors.New("gone")
	for sentence, tc := range map[string]struct {
		ago  time.Duration
		asks bool
	}{
		"the last start was just now": {0, false},
		"the last start was long ago": {startPause, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			old, next := plainMesh(t), plainMesh(t)
			old.startedAt = time.Now().Add(-tc.ago)
			old.forget(gone)
			next.after(old)
			asked := false
			err := next.starting.try(t.Context(), func(context.Context) error { asked = true; return nil })
			if asked != tc.asks || (err == nil) != tc.asks || err != nil && !errors.Is(err, gone) {
				t.Errorf("asked: %t, error %v", asked, err)
			}
		})
	}
}

func plainMesh(t *testing.T) *mesh {
	t.Helper()
	m, err := newMesh(&rest.Config{Host: "https://east"}, Options{}, Options{}.hooks(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Credentials that cannot be read leave those before in use, but not a mesh that is none.
func TestAMeshThatIsUnservedIsNotUsedForWantOfCredentials(t *testing.T) {
	s := newIstio(t)
	a, g, _ := newAccess(t, &bytes.Buffer{})
	g.become(s.URL, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	g.become("", errors.New("there are two"))
	if err := call(t, a); err != nil {
		t.Errorf("while all is served: %v", err)
	}
	a.current.Load().forget(errors.New("gone"))
	assertNamed(t, call(t, a), "there are two")
	g.become(s.URL, nil)
	comes(t, "another mesh", func() bool { return call(t, a) == nil })
}

func TestNothingThatWasReadIsReadInAnOlderVersionAfterATakeOver(t *testing.T) {
	old, heir := behind(t, 3), behind(t, 3)
	bring(t, old, version("cart-0", 9, 90))  // read only
	bring(t, heir, version("cart-0", 5, 50)) // by a list that is older
	write(t, old, "cart-1", 11)              // written, and not brought yet
	bring(t, old, version("cart-2", 9, 90))
	bring(t, heir, version("cart-2", 30, 33)) // newer than what is handed on
	bring(t, old, version("gone", 9, 90))     // and not in the list
	old.bequeath(heir)
	for name, weight := range map[string]int64{"cart-0": 90, "cart-1": 11, "cart-2": 33} {
		assertWeight(t, heir, name, weight)
	}
	if _, err := heir.get("shop", "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("what is gone is read: %v", err)
	}
	write(t, old, "cart-0", 12) // was under way
	assertWeight(t, heir, "cart-0", 12)
	bring(t, heir, version("cart-0", 99, 13))
	assertWeight(t, heir, "cart-0", 13)
}

func TestWritesDuringATakeOverAreReadAfterIt(t *testing.T) {
	const objects = 200
	old, heir := behind(t, objects), behind(t, objects)
	var group sync.WaitGroup
	for i := range objects {
		group.Go(func() { write(t, old, objectNumber(i), int64(i%100+1)) })
	}
	old.bequeath(heir)
	group.Wait()
	for i := range objects {
		assertWeight(t, heir, objectNumber(i), int64(i%100+1))
	}
}

// The API server's own words, as recorded.
func TestAVersionThatIsNotServedIsToldFromAnObjectThatIsNotThere(t *testing.T) {
	for sentence, tc := range map[string]struct {
		code              int
		contentType, body string
		want              bool
	}{
		"no handler for the version": {404, "text/plain; charset=utf-8", "404 page not found\n", true},
		"an object that is not there": {404, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
"message":"virtualservices.networking.istio.io \"cart\" not found","reason":"NotFound",
"details":{"name":"cart","group":"networking.istio.io","kind":"virtualservices"},"code":404}`, false},
		"a webhook that refuses with 404": {404, "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
"message":"admission webhook \"a.b.c\" denied the request: no team owns it","reason":"NotFound","code":404}`, false},
		"a right that is missing":  {403, "application/json", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, false},
		"a proxy without a server": {503, "text/plain", "no healthy upstream", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.WriteHeader(tc.code)
				_, _ = fmt.Fprint(w, tc.body)
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Resource(testResource).Namespace("shop").Patch(t.Context(), "cart", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
			if err == nil || unserved(err) != tc.want || unserved(fmt.Errorf("in words: %w", err)) != tc.want {
				t.Errorf("unserved: %t of %v, want %t", unserved(err), err, tc.want)
			}
		})
	}
	// Typed clients put the name in either way.
	typed := apierrors.NewGenericServerResponse(404, "patch", schema.GroupResource{Resource: "virtualservices"}, "cart", "404 page not found", 0, true)
	if !unserved(typed) || unserved(apierrors.NewNotFound(schema.GroupResource{Resource: "virtualservices"}, "cart")) {
		t.Error("by the name the two are one")
	}
}

func TestAnObjectThatIsNotThereIsNoReasonToAskAgain(t *testing.T) {
	s := newIstio(t)
	a := watching(t, s)
	m := a.current.Load()
	bring(t, m.virtualServices, version("none", 3, 0)) // deleted, and the watch has not said so
	_, _, err := m.virtualServices.update(t.Context(), "shop", "none", func(*virtualservice.VirtualService) (jsonpatch.Patch, error) {
		return jsonpatch.Patch{jsonpatch.Add("/spec/http/0/route/1/weight", 1)}, nil
	})
	if !apierrors.IsNotFound(err) || m.unserved() != nil {
		t.Errorf("error %v, unserved %v", err, m.unserved())
	}
}
