package router

import (
	"time"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/guard"
)

// The controller and this process each have a watch of their own. After an outage of the
// API server the controller was seen to count the last pods while this process had not
// heard of them: the full weight was held with an error, after which the controller comes
// back only when something of the Rollout changes, and nothing did any more.
//
// The status tells how many pods the controller has counted. It may also be old: pods
// were lost since, and this process knows. So what counts is the most that it has heard
// of lately.

const (
	// heardFor is for how long a count of pods that are no longer there explains a status:
	// the controller writes one with each pod that it loses.
	heardFor = 20 * time.Second
	// behindMost is for how long a status is believed rather than this process's own count.
	behindMost = time.Minute
)

// heard is how many available pods of all revisions this process has known of.
type heard struct {
	// most is the highest count within heardFor, at when it last was so.
	most int32
	at   time.Time
	// since is since when the controller has counted more, zero if it has not.
	since time.Time
	// missing is how many more, as the last call found it.
	missing int32
}

// note keeps a count.
func (h *heard) note(available int32, now time.Time) {
	if available >= h.most || now.Sub(h.at) > heardFor {
		h.most, h.at = available, now
	}
}

// compare finds how many pods the controller has counted that this process has not heard
// of: 0 where it has heard of as many lately, or has waited for them for too long.
func (h *heard) compare(counted int32, now time.Time) {
	h.missing = max(0, counted-h.most)
	switch {
	case h.missing == 0:
		h.since = time.Time{}
	case h.since.IsZero():
		h.since = now
	case now.Sub(h.since) >= behindMost:
		h.missing = 0
	}
}

// available are the pods of all revisions that this process knows of.
func (s *situation) available() (sum int32) {
	for _, set := range s.sets {
		sum += set.Available
	}
	return sum
}

// answerBehind are the answers with what the controller has counted taken into account.
func (s *situation) answerBehind(m *memory, facts guard.Facts, d guard.Decision, otherwise guard.Answers) guard.Answers {
	if m.heard.missing == 0 {
		return otherwise
	}
	facts.Canary.Size = max(facts.Canary.Size, s.updated)
	facts.Canary.Available += m.heard.missing
	return guard.AnswerBehind(facts, d, otherwise)
}
