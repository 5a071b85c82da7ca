package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

const markKey = "istio.argoproj-labs.io/canary-rolled-back"

// rolloutServer is an API server with one Rollout.
type rolloutServer struct {
	mu      sync.Mutex
	object  map[string]any // nil: there is none
	version int
	// whole is true where Rollouts have no status subresource.
	whole bool
	// meanwhile is how many writes meet another writer first, and change what it does
	// beside taking the next version; nil is nothing.
	meanwhile int
	change    func()
	fail      int // answered to every write; 0 is not
	writes    []string
}

func newRolloutServer(t *testing.T) (*rolloutServer, *Cluster) {
	t.Helper()
	s := &rolloutServer{version: 7, object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "uid"},
		"status":   map[string]any{"currentPodHash": "new", "stableRS": "old"},
	}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL}, Options{}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func (s *rolloutServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const path = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web"
	onStatus := r.URL.Path == path+"/status"
	status := http.StatusOK
	switch {
	case s.object == nil || r.URL.Path != path && !onStatus || onStatus && s.whole:
		status = http.StatusNotFound
	case r.Method == http.MethodPatch:
		status = s.write(r, onStatus)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	answer := any(s.object)
	if status != http.StatusOK {
		reason := map[int]string{404: "NotFound", 409: "Conflict", 422: "Invalid", 403: "Forbidden", 500: "InternalError"}[status]
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": reason}
	} else {
		s.metadata()["resourceVersion"] = strconv.Itoa(s.version)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *rolloutServer) metadata() map[string]any { return s.object["metadata"].(map[string]any) }

func (s *rolloutServer) write(r *http.Request, onStatus bool) int {
	body, _ := io.ReadAll(r.Body)
	if s.fail != 0 {
		return s.fail
	}
	if s.meanwhile > 0 {
		s.meanwhile--
		s.version++
		if s.change != nil {
			s.change()
		}
	}
	s.metadata()["resourceVersion"] = strconv.Itoa(s.version)
	before, _ := json.Marshal(s.object)
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil || r.Header.Get("Content-Type") != "application/json-patch+json" {
		return http.StatusUnsupportedMediaType
	}
	after, err := patch.Apply(before)
	if err != nil {
		return http.StatusUnprocessableEntity
	}
	changed := map[string]any{}
	_ = json.Unmarshal(after, &changed)
	if onStatus {
		s.object["status"] = changed["status"]
	} else if s.whole {
		s.object = changed
	} else {
		s.object["metadata"] = changed["metadata"]
	}
	s.version++
	s.writes = append(s.writes, strings.TrimPrefix(r.URL.Path, "/apis/argoproj.io/v1alpha1/namespaces/shop/"))
	return http.StatusOK
}

func (s *rolloutServer) aborted() any { return s.object["status"].(map[string]any)["abort"] }

func (s *rolloutServer) mark() any {
	annotations, _ := s.metadata()["annotations"].(map[string]any)
	return annotations[markKey]
}

var theRollout = corev1.ObjectReference{Namespace: "shop", Name: "web", UID: "uid"}

func TestAbortRollout(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*rolloutServer)
		want   []string
	}{
		"through the status, as the command line does": {want: []string{"rollouts/web/status"}},
		"without a status subresource, through the whole object": {
			change: func(s *rolloutServer) { s.whole = true }, want: []string{"rollouts/web"}},
		"others write meanwhile": {
			change: func(s *rolloutServer) { s.meanwhile = 1 << 30 }, want: []string{"rollouts/web/status"}},
		"it is aborted already, and nothing is written": {
			change: func(s *rolloutServer) { s.object["status"].(map[string]any)["abort"] = true }},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, c := newRolloutServer(t)
			if tc.change != nil {
				tc.change(s)
			}
			for range 2 {
				if err := c.AbortRollout(t.Context(), theRollout, "new"); err != nil {
					t.Fatal(err)
				}
			}
			if s.aborted() != true {
				t.Errorf("status.abort is %v", s.aborted())
			}
			if diff := cmp.Diff(tc.want, s.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarkRollout(t *testing.T) {
	s, c := newRolloutServer(t)
	s.meanwhile = 2
	set := func(value string) {
		t.Helper()
		for range 2 {
			if err := c.MarkRollout(t.Context(), theRollout, "new", markKey, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	set("new aborting: why")
	if s.mark() != "new aborting: why" {
		t.Errorf("the annotation is %v", s.mark())
	}
	set("new aborted: why")
	set("")
	if s.mark() != nil {
		t.Errorf("the annotation is %v", s.mark())
	}
	if len(s.writes) != 3 {
		t.Errorf("writes: %v, want 3", s.writes)
	}
	if s.aborted() != nil {
		t.Error("a mark aborts")
	}
}

func TestARolloutThatHasMovedOnIsLeftAlone(t *testing.T) {
	for sentence, change := range map[string]func(*rolloutServer){
		"it is gone":                func(s *rolloutServer) { s.object = nil },
		"it is another one":         func(s *rolloutServer) { s.metadata()["uid"] = "other" },
		"it is at another revision": func(s *rolloutServer) { s.object["status"] = map[string]any{"currentPodHash": "newer"} },
		"it has not been looked at": func(s *rolloutServer) { delete(s.object, "status") },
	} {
		t.Run(sentence, func(t *testing.T) {
			s, c := newRolloutServer(t)
			change(s)
			abort := c.AbortRollout(t.Context(), theRollout, "new")
			mark := c.MarkRollout(t.Context(), theRollout, "new", markKey, "new aborting: why")
			for _, err := range []error{abort, mark} {
				if !errors.Is(err, ErrSuperseded) || err.Error() != "Rollout shop/web at pod-template hash new: the Rollout has moved on" {
					t.Errorf("the error is %v", err)
				}
			}
			if len(s.writes) > 0 {
				t.Errorf("written: %v", s.writes)
			}
		})
	}
}

func TestARefusedWriteNamesTheRollout(t *testing.T) {
	s, c := newRolloutServer(t)
	s.fail = http.StatusForbidden
	err := c.AbortRollout(t.Context(), theRollout, "new")
	if err == nil || errors.Is(err, ErrSuperseded) || !strings.HasPrefix(err.Error(), "writing Rollout shop/web: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestARolloutThatMovesOnBetweenReadAndWriteIsLeftAlone(t *testing.T) {
	for sentence, change := range map[string]func(*rolloutServer){
		"to another revision": func(s *rolloutServer) { s.object["status"].(map[string]any)["currentPodHash"] = "newer" },
		"as another Rollout":  func(s *rolloutServer) { s.metadata()["uid"] = "other" },
	} {
		t.Run(sentence, func(t *testing.T) {
			s, c := newRolloutServer(t)
			s.meanwhile, s.change = 1, func() { change(s) }
			if err := c.AbortRollout(t.Context(), theRollout, "new"); !errors.Is(err, ErrSuperseded) {
				t.Errorf("the error is %v", err)
			}
			if len(s.writes) > 0 {
				t.Errorf("written: %v", s.writes)
			}
		})
	}
}

func TestAnAnnotationThatComesMeanwhileStays(t *testing.T) {
	s, c := newRolloutServer(t)
	s.meanwhile, s.change = 1, func() { s.metadata()["annotations"] = map[string]any{"theirs": "stays"} }
	if err := c.MarkRollout(t.Context(), theRollout, "new", markKey, "new aborting: why"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"theirs": "stays", markKey: "new aborting: why"}, s.metadata()["annotations"]); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestAWriteThatIsRefusedForGoodIsGivenUp(t *testing.T) {
	for sentence, code := range map[string]int{
		"by validation": http.StatusUnprocessableEntity,
		"by a webhook":  http.StatusConflict,
	} {
		t.Run(sentence, func(t *testing.T) {
			s, c := newRolloutServer(t)
			s.fail = code
			err := c.AbortRollout(deadline(t, time.Minute), theRollout, "new")
			if err == nil || errors.Is(err, ErrSuperseded) || !strings.HasPrefix(err.Error(), "writing Rollout shop/web: ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func deadline(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
