package timeline

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// apiServer speaks as much of the Kubernetes API as a recorder uses: LIST and
// WATCH of a namespace from one history with one counter, as etcd gives it.
type apiServer struct {
	t      *testing.T
	client dynamic.Interface

	mu sync.Mutex
	// revision is the counter, compacted what is forgotten of the history.
	revision, compacted int
	history             []change
	// grown is closed at each change; hangUp at each end of all watches.
	grown, hangUp chan struct{}
	// silent watches deliver nothing, refused resources are forbidden.
	silent  map[string]bool
	refused map[string]bool
	watches []string
}

type change struct {
	resource, verb string
	obj            *unstructured.Unstructured
	revision       int
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{
		t: t, revision: 100, grown: make(chan struct{}), hangUp: make(chan struct{}),
		silent: map[string]bool{}, refused: map[string]bool{},
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		s.endWatches()
		web.Close()
	})
	client, err := dynamic.NewForConfig(&rest.Config{Host: web.URL, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	return s
}

// write puts a version of an object and returns its resourceVersion.
func (s *apiServer) write(verb, text string) uint64 {
	obj := object(s.t, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision += 5
	obj.SetResourceVersion(strconv.Itoa(s.revision))
	resource := strings.ToLower(obj.GetKind()) + "s"
	s.history = append(s.history, change{resource, verb, obj, s.revision})
	close(s.grown)
	s.grown = make(chan struct{})
	return uint64(s.revision)
}

func (s *apiServer) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.hangUp)
	s.hangUp = make(chan struct{})
}

// compact forgets the history up to now: watches from before are Gone.
func (s *apiServer) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	s.compacted = s.revision
}

func (s *apiServer) set(which map[string]bool, resource string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	which[resource] = on
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	s.mu.Lock()
	refused := s.refused[resource]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !strings.Contains(r.URL.Path, "/namespaces/shop/"):
		s.t.Errorf("a request beyond the namespace: %s", r.URL)
	case refused:
		status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r, resource)
	default:
		s.list(w, resource)
	}
}

func status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"said the stub","reason":%q,"code":%d}`, reason, code)
}

func (s *apiServer) list(w http.ResponseWriter, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := map[string]any{}
	for _, c := range s.history {
		if c.resource != resource {
			continue
		}
		newest[c.obj.GetName()] = c.obj.Object
		if c.verb == "DELETED" {
			delete(newest, c.obj.GetName())
		}
	}
	items := []any{}
	for _, o := range newest {
		items = append(items, o)
	}
	s.encode(w, map[string]any{
		"kind": "List", "apiVersion": "v1", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.revision)},
	})
}

func (s *apiServer) encode(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.t.Logf("the client went away: %v", err)
	}
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		s.t.Errorf("a watch from no resourceVersion: %s", r.URL)
	}
	s.mu.Lock()
	s.watches = append(s.watches, fmt.Sprintf("%s from %d %s", resource, from, r.URL.Query().Get("fieldSelector")))
	hangUp := s.hangUp
	s.mu.Unlock()
	w.WriteHeader(http.StatusOK)
	s.encodeBookmark(w, resource, from)
	for {
		hungUp, gone, news, grown := s.since(resource, from, hangUp)
		if hungUp {
			return
		}
		if gone {
			fmt.Fprintf(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`+"\n")
			return
		}
		for _, c := range news {
			s.encode(w, map[string]any{"type": c.verb, "object": c.obj.Object})
			from = c.revision
		}
		select {
		case <-grown:
		case <-hangUp:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// encodeBookmark sends the event that has a version and no content.
func (s *apiServer) encodeBookmark(w http.ResponseWriter, resource string, from int) {
	s.encode(w, map[string]any{"type": "BOOKMARK", "object": map[string]any{
		"kind": resource, "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": strconv.Itoa(from)},
	}})
}

func (s *apiServer) since(resource string, from int, hangUp chan struct{}) (hungUp, gone bool, news []change, grown chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hangUp != s.hangUp {
		return true, false, nil, nil
	}
	if from < s.compacted {
		return false, true, nil, nil
	}
	for _, c := range s.history {
		if c.resource == resource && c.revision > from && !s.silent[resource] {
			news = append(news, c)
		}
	}
	return false, false, news, s.grown
}
