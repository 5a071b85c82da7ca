package release

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// source is a server on loopback with the files that a release has, and some that
// it has not.
type source struct {
	*httptest.Server
	binary []byte

	mu      sync.Mutex
	fetched map[string]int // by path
	// hanging is closed when a request for /hangs has come; free lets it go.
	hanging, free chan struct{}
}

// The paths of a source. That of the plugin ends as a release's file does.
const (
	atPlugin = "/v1.2.3/rollouts-plugin-trafficrouter-istio-linux-amd64"
	atPage   = "/login"
	atCut    = "/cut"
	atHang   = "/hangs"
)

func newSource(t *testing.T) *source {
	t.Helper()
	binary, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{binary: binary, fetched: map[string]int{}, hanging: make(chan struct{}), free: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.fetched[r.URL.Path]++
	s.mu.Unlock()
	switch r.URL.Path {
	case atPlugin:
		_, _ = w.Write(s.binary) // the controller may end
	case atPage:
		fmt.Fprint(w, "<!doctype html><title>Please log in</title>")
	case atCut:
		w.Header().Set("Content-Length", fmt.Sprint(len(s.binary)))
		_, _ = w.Write(s.binary[:1<<20])
	case atHang:
		close(s.hanging)
		<-s.free
		panic(http.ErrAbortHandler)
	default:
		http.NotFound(w, r)
	}
}

func (s *source) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetched[path]
}

func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// keep writes a file that is not executable, as a volume may hold it.
func keep(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
