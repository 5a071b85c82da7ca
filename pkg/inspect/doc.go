// Package inspect tells a person on call what a Rollout waits for, and why.
//
//	seen, err := inspect.Look(ctx, reader, options, "shop", "web")   // reads
//	report := inspect.Compose(seen)                                  // pure
//	report.Table(out, inspect.Plain)                    // pure
//
// Look reads the Rollout and what its routing is made of, by plain gets and lists, and has
// package router judge it: router.Explain is the plugin's own code, fed with the facts of
// this moment. Nothing in here decides on a weight. Compose puts what was found into a
// Report, with one sentence about what is waited for, and findings about what is held or
// wrong. The table, JSON and YAML are of the same Report.
//
// # What cannot be told from outside
//
// The running plugin remembers since when a weight is held, when it lowered one by itself,
// when it saw the first pod of a revision, and what the health gate has measured. Of that,
// only what has left a trace is told: the times of the last changes in the objects,
// annotations, the status, and Events. For all else the Report says "known to the running
// plugin only".
//
// What the running plugin refuses, by its operator's flags or as another Rollout has the
// same route, is known by its Event alone: the newest stands as long as nothing newer shows
// that the plugin has handled the Rollout. And a controller that cannot call the plugin says
// so in its log only: where nothing has gone on for some minutes, the sentence says to look
// there.
//
// Where a right or a kind is missing, or the plugin refuses the Rollout, the Report has what
// can be told all the same, and says what is missing.
//
// # What it does not do
//
// It writes nothing, and begins no watch: rights to get and list are all it needs. To follow
// a Rollout its caller looks again.
package inspect
