// Package virtualservice reads what the plugin has to know of an Istio
// VirtualService and computes the JSON patch that moves weight between its stable
// and its canary destinations.
//
// The view is small and does not change once it is parsed. It is a Kubernetes
// object itself, so that an informer can keep it instead of the whole object:
//
//	vs := virtualservice.Parse(u, fieldManager)
//	routes, err := vs.Select(selection, split)   // which routes, all checked
//	patch, changes, err := vs.SetCanaryWeight(routes, split, 30)
//	body, err := patch.Guarded(vs.ResourceVersion).Marshal()
//
// # What is ours
//
// A destination is ours if its host, completed in the VirtualService's namespace,
// and its subset are those of a Side. The same subset on another host is foreign,
// and so is another subset of our host. One exception is made for a split by hosts
// (sides without a subset): where a route has no destination of the host without a
// subset, its destination with a subset stands for the side. The native router
// looks at the host alone, and rules that pin a fixed subset are in use.
//
// # Which routes
//
// Named routes: exactly those, each name must exist, and where several http routes
// have the name, all of them. A tls route is meant by port and set of SNI hosts, or
// by the port alone where no hosts are listed; a tcp route by port. As in the native
// router, the match blocks of one route are taken together: the SNI hosts are the
// union of all blocks, the port must be the same in all of them, and a block without
// a port has port 0. Unlike there, a listed route of one protocol leaves the only
// route of another alone.
//
// Nothing listed: of each protocol the only route, and of several http routes the
// only one without a name, if it holds both of our destinations. AllMatching: every
// route that holds both. Routes in Managed are never selected and never counted.
//
// No route at all is always an error: there is no success without a write where one
// was due. Routes that are not selected are never judged, whatever they hold.
//
// # Which weights
//
// The weights of a route add up to Max afterwards. Foreign destinations keep
// their weight F and ours share the rest:
//
//	canary = floor((Max - F) * weight / Max)
//	stable = (Max - F) - canary
//
// so that canary and stable are to each other as weight to Max - weight, the canary
// never gets more than was asked for, and at weight = Max it gets all of the rest.
//
// # What this package does not do
//
// It reads and writes nothing in a cluster, keeps no state, logs nothing, and does
// not judge whether a weight is a good idea: that is the guard's part. It adds and
// removes no routes and no destinations. The field formats are those of istio.io/api
// networking/v1. All functions are pure and safe for concurrent use.
package virtualservice
