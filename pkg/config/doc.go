// Package config reads the plugin's block of a Rollout,
//
//	spec.strategy.canary.trafficRouting.plugins["argoproj-labs/istio"]
//
// and the few Rollout fields that give it its meaning: canaryService,
// stableService, pingPong, maxTrafficWeight and progressDeadlineSeconds. The
// vocabulary is that of the native istio block, so that migrating means moving the
// block; a guard, an explicit namespace and allMatchingRoutes are added.
//
//	cfg, err := config.FromRollout(ro, config.Options{ExecutablePath: os.Args[0]})
//	if err != nil {
//		return err // says everything that is wrong at once; nothing may be written
//	}
//	if cfg.DestinationRule == nil {
//		// host-level: cfg.CanaryService and cfg.StableService are the two hosts
//	}
//
// Decoding is strict, because a field that is silently ignored here is a canary
// that silently does something else. All problems are reported together, in an
// order that does not depend on the order of the fields in the block.
//
// The package is pure: it reads no cluster, no clock and no environment, and
// changes nothing. Whether the named objects exist and hold the named routes and
// subsets is for the packages that read them.
package config
