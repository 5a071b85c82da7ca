package timeline

import (
	"encoding/json"
	"fmt"
	"time"
)

// wireTimeline is a timeline in JSON: what its fold needs, without the whole objects.
type wireTimeline struct {
	Subject Subject     `json:"subject"`
	Start   time.Time   `json:"start"`
	End     string      `json:"end"`
	Entries []wireEntry `json:"entries"`
	Gaps    []string    `json:"gaps,omitempty"`
}

type wireEntry struct {
	At              string          `json:"at"`
	ResourceVersion uint64          `json:"resourceVersion,omitempty"`
	Kind            Kind            `json:"kind"`
	Name            string          `json:"name"`
	Found           bool            `json:"found,omitempty"`
	Deleted         bool            `json:"deleted,omitempty"`
	Manager         string          `json:"manager,omitempty"`
	Fact            json.RawMessage `json:"fact"`
}

// MarshalJSON implements json.Marshaler. Whole objects are left out: a timeline that was
// read again can be measured, printed and drawn, and not held against a rule that asks
// for the Rollout's steps.
func (t Timeline) MarshalJSON() ([]byte, error) {
	wire := wireTimeline{Subject: t.Subject, Start: t.Start, End: t.End.String(), Gaps: t.Gaps}
	for _, e := range t.Entries {
		fact, err := json.Marshal(e.Fact)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", e.Fact.Kind(), e.Name, err)
		}
		wire.Entries = append(wire.Entries, wireEntry{
			At: e.At.String(), ResourceVersion: e.ResourceVersion, Kind: e.Fact.Kind(), Name: e.Name,
			Found: e.Found, Deleted: e.Deleted, Manager: e.Manager, Fact: fact,
		})
	}
	return json.Marshal(wire)
}

// UnmarshalJSON implements json.Unmarshaler. The error names the entry, counted from 0.
func (t *Timeline) UnmarshalJSON(data []byte) error {
	var wire wireTimeline
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	end, err := time.ParseDuration(wire.End)
	if err != nil {
		return fmt.Errorf("timeline: end: %w", err)
	}
	*t = Timeline{Subject: wire.Subject, Start: wire.Start, End: end, Gaps: wire.Gaps}
	for i, w := range wire.Entries {
		e, err := w.entry()
		if err != nil {
			return fmt.Errorf("timeline: entry %d: %w", i, err)
		}
		t.Entries = append(t.Entries, e)
	}
	return nil
}

func (w wireEntry) entry() (Entry, error) {
	e := Entry{ResourceVersion: w.ResourceVersion, Name: w.Name, Found: w.Found, Deleted: w.Deleted, Manager: w.Manager}
	at, err := time.ParseDuration(w.At)
	if err != nil {
		return e, fmt.Errorf("at: %w", err)
	}
	e.At = at
	e.Fact, err = factOf(w.Kind, w.Fact)
	return e, err
}

// factOf reads the fact of a kind.
func factOf(kind Kind, data []byte) (Fact, error) {
	switch kind {
	case KindVirtualService:
		return factAs[VirtualService](data)
	case KindDestinationRule:
		return factAs[DestinationRule](data)
	case KindService:
		return factAs[Service](data)
	case KindReplicaSet:
		return factAs[ReplicaSet](data)
	case KindRollout:
		return factAs[Rollout](data)
	case KindEvent:
		return factAs[Event](data)
	case KindMark:
		return Mark{}, nil
	default:
		return nil, fmt.Errorf("kind %q: a timeline has none of it", kind)
	}
}

func factAs[F Fact](data []byte) (Fact, error) {
	var f F
	err := json.Unmarshal(data, &f)
	return f, err
}
