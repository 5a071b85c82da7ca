// Package verification judges whether what the objects say has arrived: behind the
// Services, and in what istiod serves.
//
//	plan := verification.NewPlan(facts)                   // from the objects
//	client.Follow(rollout.UID, namespace, plan.Want())    // package mesh
//	ok, waiting := plan.Judge(served, endpoints, counted)
//
// The plan says what istiod has to serve for these objects: for each host and port the
// routes in their order, with their clusters and weights, as istiod makes them of a
// VirtualService (pilot/pkg/networking/core/route of Istio): one route for each match
// block that fits the port and the client, none after one that takes every request, no
// destination with weight 0 beside others. What is served has to be that, and no more.
// Of the clusters that have weight each must exist and have the pods that were counted
// on, and no pod of another revision: a subset whose label moves keeps its name, so
// only its endpoints tell.
//
// # What cannot be seen
//
// What is asked is the view of a client in the mesh without labels. It has no routes
// of gateways, none for TLS and TCP, none of a VirtualService that only another one
// delegates to, and none for clients with certain labels. [Plan.Hidden] names them.
// Clusters and endpoints are judged all the same, and [Plan.CanaryWeight] is not known
// then. Of ServiceEntry hosts neither ports nor pods are known.
//
// Mirroring is known by the name of its route alone.
//
// The package is pure: no clock, no cluster, no log. A plan is made for one version of
// the objects, does not change, and may be used by any number of goroutines. What is
// served is data of another process: whatever it holds, there is an answer.
package verification
