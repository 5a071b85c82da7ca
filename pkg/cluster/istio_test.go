package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// both are Istio's two kinds.
var both = []string{"virtualservices", "destinationrules"}

// istio answers as an API server with Istio's definitions and one VirtualService,
// shop/cart, whose canary gets its weight by patches. It counts what it is asked.
type istio struct {
	*httptest.Server
	mu     sync.Mutex
	counts map[string]int // of each request, as "list v1/virtualservices"
	open   map[string]int // watches, by the same words
	// serves and says are the resources by version: those that are there, and those that
	// it says are there.
	serves, says map[string][]string
	changed      chan struct{} // closed when the watches end
	weight       int64
	version      int64 // of the VirtualService
	late         bool  // lists are as they would have been at the start
}

func newIstio(t *testing.T) *istio {
	t.Helper()
	s := &istio{counts: map[string]int{}, open: map[string]int{}, changed: make(chan struct{}), version: 10}
	s.serve(map[string][]string{"v1": both})
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // first: Close waits for the watches
	return s
}

// serve changes what is served, and says so. Watches stay open, as they do for a while.
func (s *istio) serve(versions map[string][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serves, s.says = versions, versions
}

// endWatches is what follows.
func (s *istio) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *istio) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[request]
}

func (s *istio) requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// watches are those that are open.
func (s *istio) watches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for watch, n := range s.open {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, watch))
		}
	}
	slices.Sort(all)
	return all
}

func (s *istio) stored() (weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.weight
}

// ServeHTTP answers with plain text where an API server has no handler, and with a
// Status where it has one.
func (s *istio) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/networking.istio.io/"), "/")
	version, query := parts[0], r.URL.Query()
	if len(parts) == 1 {
		s.sayWhatIsServed(w, version)
		return
	}
	resource, verb := parts[1], "list"
	switch {
	case r.Method == http.MethodPatch:
		resource, verb = parts[3], "patch"
	case query.Get("sendInitialEvents") != "":
		http.NotFound(w, r)
		return
	case query.Get("watch") != "":
		verb = "watch"
	}
	request := verb + " " + version + "/" + resource
	s.mu.Lock()
	s.counts[request]++
	there, changed := slices.Contains(s.serves[version], resource), s.changed
	s.mu.Unlock()
	switch {
	case !there:
		http.NotFound(w, r)
	case verb == "watch":
		s.watch(w, r, request, changed)
	case verb == "patch":
		s.patch(w, r, version, parts[4])
	default:
		s.list(w, version, resource)
	}
}

func (s *istio) sayWhatIsServed(w http.ResponseWriter, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts["resources of "+version]++
	if len(s.says[version]) == 0 {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	var all []map[string]string
	for _, resource := range s.says[version] {
		all = append(all, map[string]string{"name": resource})
	}
	answer(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "resources": all})
}

func (s *istio) watch(w http.ResponseWriter, r *http.Request, request string, changed <-chan struct{}) {
	opened := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[request] += n
	}
	opened(1)
	defer opened(-1)
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	select {
	case <-changed:
	case <-r.Context().Done():
	}
}

func (s *istio) list(w http.ResponseWriter, apiVersion, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []any{}
	if resource == "virtualservices" {
		object := s.object(apiVersion)
		if s.late {
			object = version("cart", 10, 0).Object
		}
		items = append(items, object)
	}
	answer(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": networkingGroup + "/" + apiVersion,
		"metadata": map[string]string{"resourceVersion": "10"}, "items": items})
}

func (s *istio) object(apiVersion string) map[string]any {
	u := version("cart", s.version, s.weight)
	u.SetAPIVersion(networkingGroup + "/" + apiVersion)
	return u.Object
}

func (s *istio) patch(w http.ResponseWriter, r *http.Request, apiVersion, name string) {
	body, _ := io.ReadAll(r.Body)
	var ops []struct{ Value any }
	s.mu.Lock()
	defer s.mu.Unlock()
	switch err := json.Unmarshal(body, &ops); {
	case err != nil || len(ops) != 2:
		refuse(w, http.StatusBadRequest, "BadRequest", name)
	case name != "cart":
		refuse(w, http.StatusNotFound, "NotFound", name)
	case ops[0].Value != fmt.Sprint(s.version):
		refuse(w, http.StatusUnprocessableEntity, "Invalid", name)
	default:
		s.version, s.weight = s.version+1, int64(ops[1].Value.(float64))
		answer(w, http.StatusOK, s.object(apiVersion))
	}
}

func refuse(w http.ResponseWriter, code int, reason, name string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
		"message": "refused: " + reason, "details": map[string]any{"name": name, "group": networkingGroup, "kind": "virtualservices"}})
}

func answer(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content)
}
