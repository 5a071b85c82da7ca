// Command licences writes docs/licences.md: every module whose code is in a released
// binary, with the licence of each file of licence text that covers it.
//
//	cd hack/licences && go run . ../..                # write it
//	cd hack/licences && go run . --check ../..        # fail where it is not up to date
//	cd hack/licences && go run . --texts FILE ../..   # the texts themselves and the notices, to pass on with a binary
//
// In each case it fails for a licence that is not in the list of allowed ones, for a text
// that it does not recognise, and for a module without any.
//
// The texts are read from the module cache, so nothing is downloaded but modules. What
// only tests and tools use is not in a binary and not listed. It is no lawyer: it tells
// which texts there are.
package main
