// Package prometheus asks a Prometheus, or what speaks its API, for the numbers of a
// window: how many requests each side of a canary had, how many failed, and how long they
// took. What the numbers mean is package gate's to say.
//
//	client := prometheus.New(prometheus.Options{Address: "http://prometheus.monitoring:9090"})
//	desk := prometheus.NewDesk(client)
//	desk.OnAnswered(lookAgain)
//	desk.Ask(question)            // returns at once
//	answer := desk.Answer(rollout) // nil until there is one
//
// # What is counted
//
// Counters grow for as long as a pod lives, so that only differences say something about
// a window. One counter's difference is what increase() makes of its samples within the
// window; a counter that starts again from 0 is no trouble for it. A counter that was not
// there before the window has grown from 0 within it, and increase() would leave out all
// that it had counted when it was first seen: the first failures of a canary, of all
// things. Such a one counts in full. For that to be right the server must have looked
// before the window: where it knows nothing at all about the service from then, as after
// an outage, the numbers are not Known.
//
// # What is bounded
//
// The time of a question, the size of an answer, and how many questions there are at a
// time. Redirects are not followed. The token goes to the operator's address and nowhere
// else.
package prometheus
