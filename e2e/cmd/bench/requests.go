package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// agent is the beginning of the plugin's user agent; it is the same user as its
// controller.
const agent = "rollouts-plugin-trafficrouter-istio/"

// kindOfRequest is what requests are counted by.
type kindOfRequest struct {
	verb, resource string // the resource with its subresource, as in rollouts/status
}

// reads are the verbs for which a cache should have stood in.
var reads = []string{"get", "list"}

// writes are those that change an object.
var writes = []string{"create", "update", "patch", "delete"}

// counted are numbers of requests by their kind.
type counted map[kindOfRequest]int

// of sums the requests up that have one of the verbs.
func (c counted) of(verbs ...string) int {
	sum := 0
	for kind, n := range c {
		if slices.Contains(verbs, kind.verb) {
			sum += n
		}
	}
	return sum
}

// kinds are in the order of a table: by resource, then by verb.
func (c counted) kinds() []kindOfRequest {
	return slices.SortedFunc(maps.Keys(c), func(a, b kindOfRequest) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
	})
}

// traffic are the requests of one controller and of its plugin.
type traffic struct{ controller, plugin counted }

// trafficOf are the requests of a controller's service account from a moment on, by
// the API server's audit log.
func trafficOf(l *lab.Lab, c *lab.Controller, from time.Time) (traffic, error) {
	t := traffic{controller: counted{}, plugin: counted{}}
	user := lab.ServiceAccount(c.Namespace, "argo-rollouts").Name
	_, err := l.Requests(func(r lab.Request) bool {
		if r.User != user || r.Time.Before(from) {
			return false
		}
		kind := kindOfRequest{r.Verb, r.Resource}
		if r.Subresource != "" {
			kind.resource += "/" + r.Subresource
		}
		if strings.HasPrefix(r.UserAgent, agent) {
			t.plugin[kind]++
		} else {
			t.controller[kind]++
		}
		return false // it is counted, and need not be kept
	})
	if err != nil {
		return t, fmt.Errorf("counting requests: %w", err)
	}
	return t, nil
}
