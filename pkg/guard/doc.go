// Package guard decides how much of the traffic a canary may get for the pods that it has, and in which order a change of
// the subset labels is safe.
//
// It only judges. Facts are gathered first and handed in as one value; a chain of small rules turns them into a decision.
// There is no clock, no client and no log in here, every function is pure and safe for concurrent use, and none of them
// panics on bad input. What is read from and written to the cluster, and what is remembered between calls, belongs to
// package router; reading the guard's settings to package config.
//
//	f := guard.RolloutFacts(ro)
//	f.Desired, f.Canary, f.Stable, f.Written, f.WrittenKnown = …
//	f.Intended = guard.IntendedCanaryReplicas(ro, canary, stable)
//	d := guard.Decide(f)
//	weight := guard.NextWeight(f.Written, f.WrittenKnown, d, minRaise)
//	answers := guard.Answer(f, d, held, maxHold)
//
// # The decision
//
// The controller asks for weights that the canary cannot bear: at a rollback within rollbackWindow it asks for the last
// step's weight while one pod of ten is there (argo-rollouts#3941). With d the weight asked for, max the sum of both
// sides, R spec.replicas, Ac and As the available pods of canary and stable, the first rule that decides gives weight and
// reason:
//
//	rule  when                             weight                      reason
//	1     always                           d is brought into 0…max     -
//	2     d = 0                            0                           NothingAsked
//	2     both sides name one hash         d                           SameHash
//	3     Ac = 0, As > 0                   0                           NoCanaryPods
//	2     R = 0                            d                           NoReplicasAsked
//	3     Ac = 0, As = 0                   what is written, at most d  NoPods
//	4     Ac ≥ enough                      d                           EnoughPods
//	6     more than rule 5, by equal load  floor(max·Ac/(Ac+As))       EqualLoad
//	5     otherwise                        floor(d·Ac/need)            Proportional
//	7     always                           never above d               -
//
// need is min(intended canary count, ceil(d·R/max)), at least 1. enough is need as lowered by replicaProgressThreshold, at
// least 1; it says when the canary is released and nothing else, so that below it the whole need is the measure: with a
// threshold of 90 %, 9 pods of 10 get 100 and 8 pods get 80 (argo-rollouts#4458).
//
// R = 0 stands behind the first half of rule 3: on the way to 0 replicas, too, no traffic belongs on a side without pods
// while the other has some.
//
// The weight is never negative, never above d, never falls when canary pods are added, and without a threshold never
// gives a canary pod more than both its load at full size and the load of a stable pod.
//
// # The answers
//
// What a capped canary means for the controller depends on what it would do next:
//
//	situation                                           SetWeight  VerifyWeight
//	d < max                                             ok         NotVerified
//	d = max                                             ok         NotVerified with the reason
//	dynamicStableScale, and a hold keeps stable pods    error      NotVerified
//	held for maxHold or longer                          ok         NotVerified with the reason
//
// NotVerified without an error lets the reconcile go on while d < max, and ends it at d = max. There a canary that has yet
// to be scaled up would never be. NotVerified with an error lets it go on in any case. An error from SetWeight stops
// scaling, status, deadline and abort, so it is given only where it keeps something: with dynamicStableScale, when the
// canary's ReplicaSet is as large as needed (else it has to be scaled first), the stable's is larger than d leaves it
// (else there is nothing to scale away), and the traffic is not on its way back after an abort (else the stable could not
// grow). maxHold bounds it.
//
// # The writes
//
// Down at once, up in rises that are worth a push to the whole mesh: NextWeight.
//
// # The order
//
// PlanMove is what UpdateHash may do about the two subset labels, one step at a time. A label of a side that gets traffic
// never goes from a hash with available pods to one without:
//
//	label   situation                                                 step
//	either  no hash given, or the hash is right                       Nothing
//	canary  joins the hash that the stable side names, with pods      MoveLabel
//	canary  new hash cannot take the weight, stable side has pods     LowerFirst
//	canary  … and neither has the stable, but the old hash            WaitPods
//	canary  … and nobody has pods                                     MoveLabel
//	stable  no weight, new hash is the canary's: a promotion          MoveLabel
//	stable  new hash has fewer pods than needed and than the old one  WaitPods
//	stable  … or fewer than needed, but no fewer than the old one     MoveLabel
//	stable  subset names no hash, new one has fewer than needed       WaitPods
//	either  weight fits, but was lowered less than settle ago         WaitSettle
//	either  otherwise                                                 MoveLabel
//
// WaitSettle is left out where it saves nothing: when the new hash could take all of the traffic, or the old one has no
// pods. A proxy applies a DestinationRule and a VirtualService written together in an order of its own, so that a label
// moved right behind a lower weight meets requests sent by the higher one (argo-rollouts#4775).
//
// A step other than Nothing and MoveLabel is answered with an error, never with success (argo-rollouts#4390). Those of the
// canary side end by themselves within settle. WaitPods lasts until there are pods, and stands only where success would
// send traffic to nobody.
package guard
