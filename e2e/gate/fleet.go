package gate

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// Fleet serves the metrics of proxies and has Prometheus servers scrape them. Its methods
// may be called concurrently.
type Fleet struct {
	address string
	server  *http.Server

	mu      sync.Mutex
	proxies map[string]*proxy // by path
	// scrapers is who scrapes all of them.
	scrapers []*lab.Prometheus
}

// proxy is one that is scraped.
type proxy struct {
	counters
	labels map[string]string
}

// NewFleet serves on an address of its own until Close.
func NewFleet(scrapers ...*lab.Prometheus) (*Fleet, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &Fleet{address: listener.Addr().String(), proxies: map[string]*proxy{}, scrapers: scrapers}
	f.server = &http.Server{Handler: f}
	go func() { _ = f.server.Serve(listener) }()
	return f, nil
}

// Close ends it.
func (f *Fleet) Close() error { return f.server.Close() }

// ServeHTTP serves the metrics of the proxy that the path names.
func (f *Fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	p := f.proxies[r.URL.Path]
	f.mu.Unlock()
	if p == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	p.write(w)
}

// Proxy returns one by its path, and has it scraped with these labels if it is new.
func (f *Fleet) Proxy(path string, labels map[string]string) (*proxy, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.proxies[path]; p != nil {
		return p, nil
	}
	p := &proxy{labels: labels}
	f.proxies[path] = p
	return p, f.scrape()
}

// Keep takes away all proxies whose path begins so, but for those that are to be kept.
func (f *Fleet) Keep(prefix string, kept map[string]bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.proxies)
	maps.DeleteFunc(f.proxies, func(path string, _ *proxy) bool { return strings.HasPrefix(path, prefix) && !kept[path] })
	if len(f.proxies) == before {
		return nil
	}
	return f.scrape()
}

// Scrape has one more server scrape the fleet.
func (f *Fleet) Scrape(p *lab.Prometheus) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scrapers = append(f.scrapers, p)
	return f.scrape()
}

func (f *Fleet) scrape() error {
	var targets []lab.ScrapeTarget
	for _, path := range slices.Sorted(maps.Keys(f.proxies)) {
		targets = append(targets, lab.ScrapeTarget{Address: f.address, Path: path, Labels: f.proxies[path].labels})
	}
	for _, p := range f.scrapers {
		if err := p.Scrape(targets); err != nil {
			return err
		}
	}
	return nil
}
