// Package managedroute says which header and mirror routes a Rollout is to have at
// this moment.
//
// They are derived, never remembered: what should be there follows from the steps
// up to the current one, the later step of a name winning and a step without a
// match removing. So a call that the controller skipped, pods that restarted and a
// route that somebody edited by hand are all made good by the next look, and a
// Rollout that is done, aborted or promoted in full has none
// (argo-rollouts#4716: the controller asks for a route only while its step is the
// current one, and never again).
//
// The package does not know which pods are there: whether a route may be in place
// now is for the caller, who must not send requests to a canary without pods. Nor
// does it know what a route looks like in a VirtualService, which is
// pkg/virtualservice's part. All functions are pure.
package managedroute
