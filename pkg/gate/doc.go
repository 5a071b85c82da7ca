// Package gate decides whether a canary is well enough to go on, and when to ask about it.
//
// It only judges. The numbers of a window are package prometheus' to fetch; what is written
// and told is package router's. There is no clock, no client and no log in here: time comes
// in as an argument, state goes out as a value, and every function is pure and safe for
// concurrent use.
//
//	f := gate.Facts{…}
//	state, d := state.Next(now, f)
//	answers := gate.Answers(facts, decision, guardAnswers, spent, f.Place, d)
//
// # Windows
//
// A stretch is a time in which one revision has one weight against one other, and in which
// that weight is in effect. A window belongs to one stretch: it begins when the proxies have
// had time to hear of the weight, and whatever changes begins a new one. There is one
// question for each window, and the next window begins where the last one ended.
//
//	a window shows                                        finding
//	no answer, a query at fault, numbers that are none    Undecided
//	a source that knew nothing before the window          Undecided
//	fewer than minRequests on a side that counts          Undecided
//	more 5xx than max5xxPercent, by one request alone     Undecided
//	more 5xx than max5xxPercent                           Unhealthy
//	requests without latencies                            Undecided
//	a mean latency over maxLatencyFactor times the other  Unhealthy
//	anything else                                         Healthy
//
// The stable counts in two ways only: it must have had requests, and its latency is the
// measure for the canary's, unless it fails itself. It does not count at all where it gets
// no traffic, and for a rollback within rollbackWindow: who rolls back in an incident does
// not want to hear that the version to be got rid of is failing.
//
// # Verdicts
//
//	situation                                             verdict
//	aborted, pinned, promoted in full by a person         Off
//	no traffic asked for, or only one revision            Off
//	a rollback is begun and not done                      RollBack
//	a window of this stretch was unhealthy: Abort         RollBack
//	… Hold, or a rollback within rollbackWindow           Hold
//	a window of this stretch was healthy                  Pass
//	otherwise                                             Hold
//
// Where no step waits for it, Hold is Watching. A window that decides nothing takes nothing
// back: what has passed has passed until the canary is sick.
//
// # One way
//
// A rollback leaves two marks: an annotation that names the revision, and status.abort. The
// annotation is written first, in the phase aborting, and again once the Rollout is aborted,
// in the phase aborted:
//
//	annotation  aborted  meaning
//	none        no       nothing was decided
//	aborting    no       a write is missing: the rollback goes on
//	aborting    yes      the second annotation is missing: it is written
//	aborted     yes      done
//	aborted     no       a person has retried: the annotation goes, the gate begins anew
//
// A mark of another revision means nothing.
//
// # What the controller makes of it
//
// See Answers.
package gate
