package virtualservice

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Target is what the routes of one Rollout are to look like. Whatever is ours and
// not in it is removed.
type Target struct {
	// Owner is the Rollout as "namespace/name". It is needed only with experiments.
	Owner string
	// Canary is the weight of the canary, in parts of Split.Max: 0..Max.
	Canary int32
	// Lower leaves routes that give the canary less than that as they are in this: they
	// may be another writer's, or newer than what Canary was decided from.
	Lower bool
	// Experiments are the templates that are to have a share, in the order in which
	// their destinations are added.
	Experiments []Experiment
	// Managed are the header and mirror routes that are to be there now, in the order
	// in which they are to stand.
	Managed []ManagedRoute
	// ManagedNames are all names of managedRoutes. An http route with one of them is
	// ours, whoever made it, and is removed unless it is wanted in its place. No two
	// Rollouts that share a VirtualService may have the same name here.
	ManagedNames []string
}

// Experiment is the destination of one template of an experiment.
type Experiment struct {
	// Service is under which name the annotation keeps it; it is never empty.
	Service string
	Side    Side
	// Weight is in parts of Split.Max, 0 or more.
	Weight int32
}

// ManagedRoute is a route that the Rollout itself makes. Exactly one of Header and
// Mirror is set.
type ManagedRoute struct {
	Name string
	// Header sends requests to the canary alone. Of several matches one has to hold
	// (OR), as with the native router.
	Header []HeaderMatch
	// Mirror leaves requests where they go and sends copies to the canary.
	Mirror *Mirror
}

// HeaderMatch is a request header and what it has to be.
type HeaderMatch struct {
	Name  string
	Value StringMatch
}

// Mirror says which requests are copied, and how many of them.
type Mirror struct {
	// Match has at least one entry; of several one has to hold (OR).
	Match []MirrorMatch
	// Percentage of the requests that are copied, 0..100. 0 is written as 0.
	Percentage int32
}

// MirrorMatch holds if all that is set in it does (AND). With nothing set it holds
// for every request that the source route takes.
type MirrorMatch struct {
	Method, Path *StringMatch
	Headers      map[string]StringMatch
}

// StringMatch has at most one field set. None set means that the header is there,
// with any value; a method or a path is always there.
type StringMatch struct {
	Exact, Prefix string
	// Regex is in RE2 syntax and has to match the whole text.
	Regex string
}

// sides are the destinations that the experiments are to have.
func (t Target) sides() []Side {
	if len(t.Experiments) == 0 {
		return nil
	}
	sides := make([]Side, len(t.Experiments))
	for i, experiment := range t.Experiments {
		sides[i] = experiment.Side
	}
	return sides
}

// services are the names under which the destinations are accounted for.
func (t Target) services() []string {
	var names []string
	for _, experiment := range t.Experiments {
		names = append(names, experiment.Service)
	}
	return names
}

func (t Target) validate(split Split) error {
	if t.Canary < 0 || t.Canary > split.Max {
		return fmt.Errorf("canary weight %d is outside 0..%d", t.Canary, split.Max)
	}
	if len(t.Experiments)+len(split.Experiments) > 0 && t.Owner == "" {
		return fmt.Errorf("experiments without the Rollout that they belong to")
	}
	if err := t.writable(); err != nil {
		return err
	}
	for i, experiment := range t.Experiments {
		if err := experiment.validate(split, t.Experiments[:i]); err != nil {
			return err
		}
	}
	for i, route := range t.Managed {
		if slices.ContainsFunc(t.Managed[:i], func(other ManagedRoute) bool { return other.Name == route.Name }) {
			return fmt.Errorf("managed route %q is wanted twice: give each step's route its own name", route.Name)
		}
		if err := route.validate(t.ManagedNames); err != nil {
			return fmt.Errorf("managed route %q: %w", route.Name, err)
		}
	}
	return nil
}

// writable refuses text that JSON cannot hold: it would be read back as something
// else, and written again and again.
func (t Target) writable() error {
	texts := []string{t.Owner}
	for _, experiment := range t.Experiments {
		texts = append(texts, experiment.Service, experiment.Side.Host, experiment.Side.Subset)
	}
	for _, route := range t.Managed {
		texts = append(texts, route.texts()...)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is no UTF-8 text and cannot be written: correct it where it comes from", text)
		}
	}
	return nil
}

// texts are all texts of the route that come to stand in the object.
func (m ManagedRoute) texts() []string {
	texts := []string{m.Name}
	value := func(match StringMatch) { texts = append(texts, match.Exact, match.Prefix, match.Regex) }
	for _, header := range m.Header {
		texts = append(texts, header.Name)
		value(header.Value)
	}
	if m.Mirror == nil {
		return texts
	}
	for _, match := range m.Mirror.Match {
		for _, optional := range []*StringMatch{match.Method, match.Path} {
			if optional != nil {
				value(*optional)
			}
		}
		for name, header := range match.Headers {
			texts = append(texts, name)
			value(header)
		}
	}
	return texts
}

func (e Experiment) validate(split Split, before []Experiment) error {
	if e.Service == "" {
		return fmt.Errorf("an experiment's destination (%s) has no service: leave it out", e.Side)
	}
	if e.Weight < 0 {
		return fmt.Errorf("weight %d of experiment service %q is below 0", e.Weight, e.Service)
	}
	for _, other := range before {
		if split.same(e.Side, other.Side) || e.Service == other.Service {
			return fmt.Errorf("experiment services %q and %q have the same destination or name: let each template have its own service",
				other.Service, e.Service)
		}
	}
	return split.apart(e.Side)
}

func (m ManagedRoute) validate(names []string) error {
	switch {
	case m.Name == "":
		return fmt.Errorf("it has no name")
	case !slices.Contains(names, m.Name):
		return fmt.Errorf("it is not in managedRoutes: add it there")
	case (len(m.Header) > 0) == (m.Mirror != nil):
		return fmt.Errorf("it must be either a header route or a mirror route")
	case m.Mirror == nil:
		return nil
	case len(m.Mirror.Match) == 0:
		return fmt.Errorf("its step has no match: add one")
	case m.Mirror.Percentage < 0 || m.Mirror.Percentage > 100:
		return fmt.Errorf("percentage %d is outside 0..100", m.Mirror.Percentage)
	}
	return nil
}

// askOf is what a route is asked for.
func (t Target) askOf(p *pair, most int32, ask shares) shares {
	if part, known := p.atMost(most); t.Lower && known && part < t.Canary {
		t.Canary = part
		return t.ask(most)
	}
	return ask
}

// ask divides Max as the target wants it where nobody else has a share. Where canary
// and experiments want more than Max the canary keeps what it is to have, and the
// experiments share the rest in proportion.
func (t Target) ask(most int32) shares {
	ask := shares{Weights: Weights{Canary: int64(t.Canary)}}
	var sum int64
	for _, experiment := range t.Experiments {
		sum += int64(experiment.Weight)
	}
	left := int64(most) - ask.Canary
	for _, experiment := range t.Experiments {
		weight := int64(experiment.Weight)
		if sum > left {
			weight = left * weight / sum
		}
		ask.experiments = append(ask.experiments, weight)
	}
	return ask
}
