// Package istiod holds pkg/mesh and pkg/verification against a real istiod: what it
// serves, and when, for objects that are written as the plugin writes them. No request
// is sent to any pod, so no network namespace is needed.
package istiod
