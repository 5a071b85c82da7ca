// Package gate plays the health gate on a real controller, with a real Prometheus that
// scrapes what the pods of the canary would say of themselves: the requests that were
// sent to each, how many failed and how long they took, in Istio's metrics and with the
// pods' hash as a label.
//
// Nobody sends those requests. A Fleet counts what the routing that is written would have
// sent to whom, and serves the counters.
package gate
