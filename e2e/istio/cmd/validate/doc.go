// Command validate says which of the VirtualServices and DestinationRules that
// tests wrote Istio refuses. With --help it says how it is used.
package main
