package gate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
)

// counters are one proxy's metrics: of a pod, or of the client. The zero value counts
// from 0.
type counters struct {
	mu sync.Mutex
	of map[labels]*count
}

// labels are those of one series of Istio's, as far as they are needed.
type labels struct {
	reporter, namespace, service, code string
}

// count is what Istio counts for each set of labels.
type count struct{ requests, milliseconds float64 }

// add counts requests that took so long each.
func (c *counters) add(l labels, requests, milliseconds float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[labels]*count{}
	}
	if c.of[l] == nil {
		c.of[l] = &count{}
	}
	c.of[l].requests += requests
	c.of[l].milliseconds += requests * milliseconds
}

// reset is what the restart of a proxy does.
func (c *counters) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of = nil
}

// write writes them as a proxy does.
func (c *counters) write(w io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range slices.SortedFunc(maps.Keys(c.of), func(a, b labels) int {
		if a.code+a.service < b.code+b.service {
			return -1
		}
		return 1
	}) {
		text := fmt.Sprintf(`{reporter=%q,source_workload="client",destination_workload_namespace=%q,destination_service=%q,response_code=%q}`,
			l.reporter, l.namespace, l.service, l.code)
		fmt.Fprintf(w, "istio_requests_total%s %v\n", text, c.of[l].requests)
		fmt.Fprintf(w, "istio_request_duration_milliseconds_sum%s %v\n", text, c.of[l].milliseconds)
		fmt.Fprintf(w, "istio_request_duration_milliseconds_count%s %v\n", text, c.of[l].requests)
	}
}
