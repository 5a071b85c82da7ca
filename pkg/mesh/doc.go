// Package mesh asks istiod what it tells the proxies: which routes a host has, with
// which weights, which clusters exist, and which endpoints are behind them.
//
//	client := mesh.New(mesh.Options{Address: "istiod.istio-system.svc:15012", TokenFile: token, RootCertFile: root}, log)
//	go client.Run(ctx)
//	client.Follow(rollout.UID, rollout.Namespace, mesh.Want{Routes: hosts, Clusters: clusters})
//	served, err := client.Served(rollout.UID)
//
// It is a client of istiod's aggregated discovery service, as a gRPC application
// without a proxy is one (Istio's "proxyless gRPC"): such a client asks for routes,
// clusters and endpoints by name, so what istiod sends is bounded by what the
// Rollouts need and not by the size of the mesh. istiod computes the answers by the
// same functions as those for sidecars.
//
// What a client sees depends on its namespace: Sidecar objects, exportTo, and which
// VirtualServices apply. So there is one stream for each namespace with a Rollout that
// asks. With a token istiod answers for no other namespace than the token's: then there
// is one stream, with the view from the plugin's own namespace.
//
// Streams exist only while somebody follows; without followers there is no
// connection, and none is ever waited for: a question is answered from what has been
// received so far. A stream that breaks is made anew, with growing pauses. The token
// and the root certificates are read anew for each one.
//
// The package does not judge whether what is served is right: that is package
// verification. It writes nothing, to nobody, and is no proxy: no request of the
// application passes through it.
//
// The protocol is that of envoy's xds_protocol documentation, state of the world
// variant. The names of clusters and routes, the node's identity and the metadata are
// Istio's (pilot/pkg/networking/grpcgen, pilot/pkg/model).
package mesh
