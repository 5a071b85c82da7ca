package virtualservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// block is one entry of a route's "match": all of it has to hold.
type block = map[string]json.RawMessage

// demand is what a step asks for in one match of its own.
type demand struct {
	// fields are by name in a block: uri and method, as far as they are asked for.
	fields  map[string]condition
	headers []headerDemand
}

type headerDemand struct {
	name string
	is   condition
}

// combination is a block in which the demand has been added.
type combination struct {
	block block
	// from is the source's condition on the path and to the one that took its place;
	// both are zero if the step asks for no path.
	from, to condition
	fold     bool
}

// errImpossible is that a block and a demand exclude each other.
var errImpossible = errors.New("no request can satisfy both")

// demands are the step's matches.
func (m ManagedRoute) demands() ([]demand, error) {
	var all []demand
	for _, match := range m.Header {
		is, err := match.Value.condition()
		if err == nil && match.Name == "" {
			err = errors.New("it has no name")
		}
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", match.Name, err)
		}
		all = append(all, demand{headers: []headerDemand{{match.Name, is}}})
	}
	if m.Mirror == nil {
		return all, nil
	}
	for _, match := range m.Mirror.Match {
		d, err := match.demand()
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func (m MirrorMatch) demand() (demand, error) {
	d := demand{fields: map[string]condition{}}
	for name, match := range map[string]*StringMatch{"uri": m.Path, "method": m.Method} {
		if match == nil {
			continue
		}
		is, err := match.condition()
		if err != nil {
			return demand{}, fmt.Errorf("%s: %w", name, err)
		}
		d.fields[name] = is
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		is, err := m.Headers[name].condition()
		if err == nil && name == "" {
			err = errors.New("it has no name")
		}
		if err != nil {
			return demand{}, fmt.Errorf("header %q: %w", name, err)
		}
		d.headers = append(d.headers, headerDemand{name, is})
	}
	return d, nil
}

// combine makes a block of each pair of a block of the route and a demand that one
// request can satisfy together. A route without blocks takes every request.
func (w *writer) combine(content block, demands []demand) []combination {
	var blocks []block
	w.read(content, "match", &blocks)
	if len(blocks) == 0 {
		blocks = []block{nil}
	}
	var all []combination
	for i, source := range blocks {
		for _, d := range demands {
			c, err := d.in(source)
			switch {
			case w.err != nil || errors.Is(err, errImpossible):
			case err != nil:
				w.err = fmt.Errorf("match[%d].%w", i, err)
			default:
				all = append(all, c)
			}
		}
	}
	return all
}

func blocksOf(combinations []combination) []block {
	blocks := make([]block, len(combinations))
	for i, c := range combinations {
		blocks[i] = c.block
	}
	return blocks
}

// in adds the demand to a copy of the source's block.
func (d demand) in(source block) (combination, error) {
	c := combination{block: maps.Clone(source), fold: string(source["ignoreUriCase"]) == "true"}
	if c.block == nil {
		c.block = block{}
	}
	for _, name := range slices.Sorted(maps.Keys(d.fields)) {
		of := comparison{path: name == "uri", fold: name == "uri" && c.fold}
		if err := meet(c.block, name, d.fields[name], of); err != nil {
			return combination{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := d.addHeaders(c.block); err != nil {
		return combination{}, err
	}
	if _, asked := d.fields["uri"]; asked { // meet has read both
		c.from, _ = readCondition(source["uri"])
		c.to, _ = readCondition(c.block["uri"])
	}
	return c, nil
}

// addHeaders leaves withoutHeaders alone: both hold together.
func (d demand) addHeaders(to block) error {
	if len(d.headers) == 0 {
		return nil
	}
	var headers block
	if raw := to["headers"]; len(raw) > 0 {
		if err := json.Unmarshal(raw, &headers); err != nil {
			return fmt.Errorf("headers: want an object: %w", err)
		}
	}
	if headers == nil {
		headers = block{}
	}
	for _, want := range d.headers {
		name := spelled(headers, want.name)
		if err := meet(headers, name, want.is, comparison{}); err != nil {
			return fmt.Errorf("headers[%q]: %w", name, err)
		}
	}
	raw, err := json.Marshal(headers)
	to["headers"] = raw
	return err
}

// spelled is the name of the header as it stands there already, in whatever case.
func spelled(headers block, name string) string {
	for _, known := range slices.Sorted(maps.Keys(headers)) {
		if strings.EqualFold(known, name) {
			return known
		}
	}
	return name
}

// meet puts into a field the condition that holds where both the one that is there
// and want do. What is there stays to the letter if want adds nothing.
func meet(in block, name string, want condition, of comparison) error {
	raw, found := in[name]
	have, err := readCondition(raw)
	if err != nil {
		return err
	}
	both, possible, err := of.both(have, want)
	switch {
	case err != nil:
		return fmt.Errorf("%s of the route and %s of the step: %w: make one of them exact, or both the same", have, want, err)
	case !possible:
		return errImpossible
	case found && both == have:
		return nil
	case both.form == unset && of.path:
		return nil // an absent path is any path
	}
	in[name], err = both.write()
	return err
}
