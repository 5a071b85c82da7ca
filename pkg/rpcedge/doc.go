// Package rpcedge is where the Argo Rollouts controller's calls come in. It
// turns each net/rpc call into a call of the router with a context and a
// deadline, and the router's error into the controller's RpcError.
//
// It keeps the promises that the process as a whole makes: a panic in one call
// ends that call and not the plugin of every other Rollout, no call outlasts
// its deadline, and clients that could not start are started at a later call,
// since the controller asks for an initialisation only once.
//
// It decides nothing about weights, hashes or routes.
package rpcedge
