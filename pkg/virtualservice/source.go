package virtualservice

import (
	"encoding/json"
	"fmt"
)

// source is an http route of which managed routes are made, and what it will be.
type source struct {
	*pair
	shares
	target *Target
}

// canaryOnly is the weight of the only destination of a header route. It is the
// same whatever the canary's share of other requests.
const canaryOnly = 100

// derive is a managed route with everything that the source says, but for its name,
// its matches and where requests go; nil if it shares no request with the source.
//
// The result has sorted keys and the same numbers as a route's Raw, so that equal
// routes are equal texts.
func (s source) derive(managed ManagedRoute, demands []demand) (json.RawMessage, error) {
	var content block
	if err := json.Unmarshal(s.route.Raw, &content); err != nil {
		return nil, fmt.Errorf("the route cannot be read: %w", err)
	}
	w := &writer{}
	combinations := w.combine(content, demands)
	if w.err != nil || len(combinations) == 0 {
		return nil, w.err
	}
	w.rewrite(content, combinations)
	w.put(content, "name", managed.Name)
	w.put(content, "match", blocksOf(combinations))
	entries := s.entries(w, content)
	switch {
	case w.err != nil:
		return nil, w.err
	case managed.Mirror == nil:
		canary := entries[s.canary.Index]
		w.put(canary, "weight", canaryOnly)
		w.put(content, "route", []block{canary})
	default:
		mirror := entries[s.canary.Index]["destination"]
		w.put(content, "route", s.settled(w, entries))
		w.mirror(content, mirror, managed.Mirror.Percentage)
	}
	return w.raw(content), w.err
}

// entries are the destinations of the route as they stand in the object.
func (s source) entries(w *writer, content block) []block {
	var entries []block
	w.read(content, "route", &entries)
	if w.err == nil && len(entries) != len(s.route.Destinations) {
		w.err = fmt.Errorf("route: %d entries where %d have been read", len(entries), len(s.route.Destinations))
	}
	return entries
}

// settled are the destinations after the patch, to the letter.
func (s source) settled(w *writer, entries []block) []any {
	set := func(d *Destination, weight int64) {
		if d != nil && d.Weight != weight {
			w.put(entries[d.Index], "weight", weight)
		}
	}
	set(s.stable, s.Stable)
	set(s.canary, s.Canary)
	for i, d := range s.wanted {
		set(d, s.experiments[i])
	}
	for _, d := range s.leftover {
		entries[d.Index] = nil
	}
	var all []any
	for _, entry := range entries {
		if entry != nil {
			all = append(all, entry)
		}
	}
	for i, d := range s.wanted {
		if d == nil {
			all = append(all, s.destination(s.target.Experiments[i].Side.on(s.sides), s.experiments[i]))
		}
	}
	return all
}
