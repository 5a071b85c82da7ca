package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/virtualservice"
)

// claims say which Rollout handles which route and subset. Two Rollouts on one
// object are fine as long as each has routes and subsets of its own; on the same
// one they would undo each other's weights for ever.
//
// The older Rollout keeps what both want, so that a new one cannot take traffic
// from one that serves. A new process learns of a claim by the first call for its
// Rollout: until then the younger one may have what the older one takes back. The
// zero value is ready.
type claims struct {
	mu sync.Mutex
	of map[string]claim      // by what is claimed
	by map[types.UID]claimed // what a Rollout claims
}

// claim is a Rollout that handles something.
type claim struct {
	uid             types.UID
	namespace, name string
	created         time.Time
}

// claimed is what a Rollout claims, and the versions of the objects it was read
// from: the same versions claim the same.
type claimed struct {
	things   []string
	versions []string
}

// before tells which of two Rollouts keeps what both want.
func (c claim) before(d claim) bool {
	if !c.created.Equal(d.created) {
		return c.created.Before(d.created)
	}
	return c.uid < d.uid
}

func (c claim) String() string { return c.namespace + "/" + c.name }

// claim takes the routes and the subsets of a situation for its Rollout. An error
// names what another Rollout handles, and that Rollout.
func (r *Router) claim(ctx context.Context, s *situation) error {
	mine := claim{uid: s.ref.UID, namespace: s.ref.Namespace, name: s.ref.Name, created: s.created}
	versions := s.versions()
	if r.claims.same(mine.uid, versions) {
		return nil
	}
	things, err := s.things()
	if err != nil {
		return err
	}
	rivals := r.claims.rivals(mine, things)
	for _, rival := range rivals {
		// A Rollout that was deleted does not say goodbye.
		ro, err := r.cluster.Rollout(ctx, rival.namespace, rival.name)
		if err != nil {
			return fmt.Errorf("looking for Rollout %s, which handles the same routes: %w", rival, err)
		}
		if ro == nil || ro.UID != rival.uid || !r.names(ro, things) {
			r.claims.release(rival.uid)
		}
	}
	return r.claims.take(mine, things, versions)
}

// names tells whether a Rollout still names an object of one of the things.
func (r *Router) names(ro *v1alpha1.Rollout, things []string) bool {
	subject, err := r.subjectOf(ro)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(subject.objects(), func(key string) bool {
		return slices.ContainsFunc(things, func(thing string) bool { return strings.HasPrefix(thing, key+", ") })
	})
}

// hold tells whether a Rollout has what it handles: one that was refused has not.
func (c *claims) hold(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.by[uid]
	return there
}

// ofAnother tells whether another Rollout has claimed a thing.
func (c *claims) ofAnother(uid types.UID, thing string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	other, taken := c.of[thing]
	return taken && other.uid != uid
}

// same tells whether a Rollout has claimed all that these versions hold.
func (c *claims) same(uid types.UID, versions []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, there := c.by[uid]
	return there && slices.Equal(known.versions, versions)
}

// rivals are the older Rollouts that claim one of the things, each once.
func (c *claims) rivals(mine claim, things []string) []claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []claim
	for _, thing := range things {
		other, taken := c.of[thing]
		if taken && other.uid != mine.uid && other.before(mine) && !slices.Contains(found, other) {
			found = append(found, other)
		}
	}
	return found
}

// take claims all of the things or, if an older Rollout has one of them, none.
func (c *claims) take(mine claim, things, versions []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, thing := range things {
		if other, taken := c.of[thing]; taken && other.uid != mine.uid && other.before(mine) {
			errs = append(errs, fmt.Errorf("%s is handled by Rollout %s already: give each Rollout routes and subsets of its own", thing, other))
		}
	}
	c.drop(mine.uid)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if c.of == nil {
		c.of, c.by = map[string]claim{}, map[types.UID]claimed{}
	}
	for _, thing := range things {
		if other, taken := c.of[thing]; taken && other.uid != mine.uid {
			c.drop(other.uid) // the newer one finds out at its next call
		}
		c.of[thing] = mine
	}
	c.by[mine.uid] = claimed{things: things, versions: versions}
	return nil
}

// release gives up all that a Rollout claims.
func (c *claims) release(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(uid)
}

func (c *claims) drop(uid types.UID) {
	for _, thing := range c.by[uid].things {
		if c.of[thing].uid == uid {
			delete(c.of, thing)
		}
	}
	delete(c.by, uid)
}

// versions are what the claims of a situation depend on.
func (s *situation) versions() []string {
	var versions []string
	for _, vs := range s.services {
		versions = append(versions, string(vs.UID), vs.ResourceVersion)
	}
	return append(versions, s.ref.ResourceVersion)
}

// things are what a Rollout handles: routes, and subsets.
func (s *situation) things() ([]string, error) {
	var things []string
	for i, vs := range s.services {
		routes, err := vs.Select(s.selection(s.wants[i]), s.split)
		if err != nil {
			return nil, err
		}
		for _, route := range routes {
			things = append(things, objectKey("VirtualService", vs.Namespace, vs.Name)+", route "+identity(vs, route))
		}
		for _, name := range s.managed {
			things = append(things, managedThing(vs.Namespace, vs.Name, name))
		}
	}
	for _, rule := range s.config.DestinationRules {
		for _, subset := range []string{rule.CanarySubsetName, rule.StableSubsetName} {
			things = append(things, fmt.Sprintf("%s, subset %q", objectKey("DestinationRule", rule.Namespace, rule.Name), subset))
		}
	}
	return things, nil
}

func managedThing(namespace, vs, name string) string {
	return fmt.Sprintf("%s, managed route %q", objectKey("VirtualService", namespace, vs), name)
}

// identity tells a route apart from the others of its VirtualService even when
// managed routes come and go before it: those have names, so a route without one
// is known by how many of its kind stand before it.
func identity(vs *virtualservice.VirtualService, route virtualservice.Route) string {
	if route.Protocol != virtualservice.HTTP {
		return route.String()
	}
	if route.Name != "" {
		return fmt.Sprintf("http %q", route.Name)
	}
	place := 0
	for _, other := range vs.HTTP[:route.Index] {
		if other.Name == "" {
			place++
		}
	}
	return fmt.Sprintf("http without a name, number %d", place)
}
