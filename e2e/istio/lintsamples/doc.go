// Package lintsamples lints what Istio itself shows: the samples in its module, each file
// as it is, and the reviews service of Bookinfo as a person would put it under a Rollout.
// There is nothing but tests in it. They stand in this module because no other one needs
// the sources of Istio.
package lintsamples
