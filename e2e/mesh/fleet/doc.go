// Package fleet sends requests as a mesh does, and keeps what became of each.
//
// A fleet is a few gRPC clients, each with an XDS stream of its own: they ask
// istiod for routes, clusters and endpoints and split their requests by what it
// says ("proxyless gRPC"). They send at a steady rate, bounded in count and time,
// and never retry. A [Record] tells of every request who answered or why nobody
// did, and judges: requests lost, the worst second, the share of a revision.
//
// A late answer is an answer: the deadline of a request is generous, as the
// machines that this runs on are small and shared.
package fleet
