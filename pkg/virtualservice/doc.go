// Package virtualservice reads what the plugin has to know of an Istio
// VirtualService and computes the one JSON patch that brings the routes of a Rollout
// to what they are to look like: the weights of the stable and the canary, the
// destinations of experiments, and the header and mirror routes that the Rollout
// itself makes (managedRoutes).
//
// The view is small and does not change once it is parsed. It is a Kubernetes
// object itself, so that an informer can keep it instead of the whole object:
//
//	vs := virtualservice.Parse(u, fieldManager)
//	routes, err := vs.Select(selection, split)   // which routes, all checked
//	patch, changes, err := vs.Set(routes, split, virtualservice.Target{Canary: 30})
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
// A Rollout may have several pairs of sides, for several hosts. A route holds one
// pair; a route with destinations of two is refused, since weight would reach a canary
// that nobody decided on.
//
// The destinations of experiments are those of Split.Experiments and Target. Which of
// them this plugin has added stands in an annotation on the object, kept by package
// ownership and written in the same patch, so that a left-over one is known as ours
// after a restart and a foreign one is never taken for it. One that was there before
// its experiment, made by hand or by the native router, is adopted, and goes with it.
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
//	canary        = floor((Max - F) * weight / Max)
//	experiment[i] = floor((Max - F) * weight[i] / Max)
//	stable        = (Max - F) - canary - the experiments
//
// so that ours are to each other as they were asked for, none but the stable gets
// more than that, and without foreign destinations the numbers are exact. Where
// canary and experiments ask for more than Max the canary keeps its weight and the
// experiments share what it leaves in proportion, each rounded down:
//
//	weight[i] = floor((Max - weight) * asked[i] / sum of asked)
//
// A destination of an experiment is added at the end of the list with the port of the
// stable one; one that is there keeps its place and its other fields. One that is no
// longer wanted is removed.
//
// # Managed routes
//
// One http route is made for each managed route and each http route that was
// selected, its source, and stands directly before it. It is known by its name and
// its place, so that calling again adds nothing; one that is doubled, or not where it
// belongs, is removed, and one with another content is replaced as a whole. The native
// router puts one route at the top of the list instead, where it also takes requests
// that an earlier route would have got, such as those for other paths of a shared
// host. Here only requests are concerned that would have reached the source. tls and
// tcp routes know no headers and have none.
//
// A managed route has everything that its source says (rewrite, timeout, retries,
// headers, fields that no version of this package knows) but for its name, its
// matches and where requests go:
//
//   - A header route has one destination, the source's canary, always with weight 100.
//     Of several headers one has to match, as with the native router.
//   - A mirror route has the source's destinations with the weights that they have
//     after the patch, and one mirror more: the canary, with its own port. Mirrors of
//     the source become a list, as Istio refuses a route with both forms.
//
// Its match blocks are those of the source, each with each match of the step: all of
// both has to hold. Two conditions on the same field become the one that holds where
// both do, and a combination that no request can satisfy is left out. ignoreUriCase
// of the source is for the step's path, too. Two conditions that one field cannot hold
// together, such as two different regular expressions, are an error. So is a managed
// route that shares no request with any of its sources; with some of them is enough.
// As rewrite.uri replaces what the path was matched by, it follows the new condition.
//
// # What this package does not do
//
// It reads and writes nothing in a cluster, keeps no state, logs nothing, and does
// not judge whether a weight, an experiment or a managed route is a good idea now:
// that is the guard's part, and which steps have been reached is package
// managedroute's. It changes nothing in a route that was not selected, and no field
// but those above. The field formats are those of istio.io/api networking/v1. All
// functions are pure and safe for concurrent use.
package virtualservice
