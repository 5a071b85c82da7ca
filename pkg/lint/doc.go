// Package lint finds, before anything is applied, what would go wrong with a Rollout
// that this plugin routes: with its own block, its VirtualServices, DestinationRules
// and Services, its steps, and what else owns a field of these objects.
//
//	var in lint.Input
//	in.Read("web.yaml", data)
//	report := lint.Run(in, lint.Options{})
//	for _, f := range report.Findings {
//		fmt.Println(f.File, f.Line, f.Code, f.Message)
//	}
//
// It judges by the code that runs: package config reads the block, virtualservice
// chooses the routes and computes the patches, managedroute follows the steps, guard
// reckons the pods. Where it has a rule of its own, the check says so in its
// explanation, and when it does not apply: a finding about what works is worse than
// one that is missing.
//
// A check has a stable code, a severity, and texts that hold for all of its findings.
// The registry (Checks) is what docs/lint.md is made of. Objects that are named and
// not in the input are no findings but notes, unless the input is known to be
// complete (Options.Complete).
//
// Whatever is compared with every other object is asked of an index, so that thousands of
// Rollouts, also of one host, take as many times what one takes. Only of a VirtualService
// with thousands of routes of which a Rollout lists none, and none fits, all are looked at.
//
// The package is pure: no client, no clock, no files, no environment. Input of any
// kind is accepted; what cannot be read is a finding with its line. All functions are
// safe for concurrent use on inputs of their own.
package lint
