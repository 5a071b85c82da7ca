package virtualservice

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/jsonpatch"
)

// derived is a managed route as it is to stand before its source.
type derived struct {
	name string
	raw  json.RawMessage
}

// manage puts the wanted managed routes directly before each http route that was
// selected, and removes all others. Where none is wanted and none is there it looks
// at nothing but names.
func (e *edit) manage(pairs []pair) error {
	names := namesOf(e.target.ManagedNames)
	if len(e.target.Managed) == 0 && !slices.ContainsFunc(e.vs.HTTP, func(route Route) bool { return names[route.Name] }) {
		return nil
	}
	for i := range pairs {
		if route := pairs[i].route; route.Protocol == HTTP && names[route.Name] {
			return e.vs.errorf("route %s is to be handled and is listed under managedRoutes: remove it from one of them", route)
		}
	}
	wanted, err := e.derive(pairs)
	if err != nil {
		return err
	}
	e.arrange(names, wanted)
	return nil
}

// namesOf is a set in which the empty name is not.
func namesOf(list []string) map[string]bool {
	names := make(map[string]bool, len(list))
	for _, name := range list {
		names[name] = name != ""
	}
	return names
}

// arrange walks along the list of http routes. Between two routes that are not
// managed stand those that belong to the second: found are there, and wanted by its
// index are to be there.
func (e *edit) arrange(names map[string]bool, wanted map[int][]derived) {
	var found []*Route
	length := 0 // of the list as it is to be, up to here
	for i := range e.vs.HTTP {
		route := &e.vs.HTTP[i]
		if names[route.Name] {
			found = append(found, route)
			continue
		}
		length = e.settle(found, wanted[route.Index], route, length) + 1
		found = found[:0]
	}
	e.settle(found, nil, nil, length)
}

// settle makes of the found managed routes the wanted ones, which have different
// names, and returns the new length of the list. One that is there in its order
// stays in its place, so that a list in order is not written at all.
func (e *edit) settle(found []*Route, wanted []derived, before *Route, length int) int {
	for _, want := range wanted {
		at := slices.IndexFunc(found, func(route *Route) bool { return route.Name == want.name })
		if at < 0 {
			e.inserted = append(e.inserted, jsonpatch.Add(httpPlace(length), want.raw))
			e.did(managedName(want.name), "added before %s", before)
		} else {
			e.remove(found[:at])
			e.replace(found[at], want, before)
			found = found[at+1:]
		}
		length++
	}
	e.remove(found)
	return length
}

func (e *edit) remove(routes []*Route) {
	for _, route := range routes {
		e.removed = append(e.removed, jsonpatch.Remove(httpPlace(route.Index)))
		e.did(managedName(route.Name), "removed from http[%d]", route.Index)
	}
}

func (e *edit) replace(route *Route, want derived, before *Route) {
	if bytes.Equal(route.Raw, want.raw) {
		return
	}
	// RFC 6902: in a list "add" would insert.
	e.replaced = append(e.replaced, jsonpatch.Op{Op: "replace", Path: httpPlace(route.Index), Value: want.raw})
	e.did(managedName(want.name), "changed before %s", before)
}

func httpPlace(index int) string {
	return jsonpatch.Pointer("spec", string(HTTP), strconv.Itoa(index))
}

func managedName(name string) string {
	return "managed route " + strconv.Quote(name)
}

// derive makes the wanted managed routes for each http route among pairs, by its
// index. One that shares no request with a source is left out there, but it has to
// share some with one of them.
func (e *edit) derive(pairs []pair) (map[int][]derived, error) {
	if len(e.target.Managed) == 0 {
		return nil, nil
	}
	routes := map[int][]derived{}
	for _, managed := range e.target.Managed {
		demands, err := managed.demands()
		if err != nil {
			return nil, e.vs.errorf("%s: %w", managedName(managed.Name), err)
		}
		sources, made := 0, 0
		for i := range pairs {
			if pairs[i].route.Protocol != HTTP {
				continue
			}
			sources++
			s := source{pair: &pairs[i], shares: e.shares[i], target: &e.target}
			raw, err := s.derive(managed, demands)
			if err != nil {
				return nil, e.vs.errorf("%s before %s: %w", managedName(managed.Name), s.route, err)
			}
			if raw == nil {
				continue
			}
			made++
			routes[s.route.Index] = append(routes[s.route.Index], derived{managed.Name, raw})
		}
		if err := e.made(managed.Name, sources, made); err != nil {
			return nil, err
		}
	}
	return routes, nil
}

// ErrNoPlace is in the error of Set when a managed route shares no request with any
// of the http routes, or there is none. A Rollout with several VirtualServices may
// have a place for it in another one.
var ErrNoPlace = errors.New("it has no place here")

// made is an error where a managed route would be nowhere.
func (e *edit) made(name string, sources, made int) error {
	switch {
	case sources == 0:
		return e.vs.errorf("%s: %w: no http route was selected that it could stand before; list one under routes, or remove the step", managedName(name), ErrNoPlace)
	case made == 0:
		return e.vs.errorf("%s: %w: no request can match both the step and one of the %d http routes before which it is to stand; correct the match of the step, or of the route",
			managedName(name), ErrNoPlace, sources)
	}
	return nil
}
