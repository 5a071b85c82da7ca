// Package simulate plays a person's own Rollout in the lab, once with the native Istio
// router and once with the plugin, and says what the two did to the traffic.
//
//	plan, err := simulate.Derive(input, settings)       // pure: two variants of the Rollout, and what was changed
//	played, err := simulate.Play(ctx, stage, plan, simulate.Rollback, settings)
//	err = simulate.WriteResult(out, simulate.Judge(plan, played)) // pure
//
// [Derive] makes the two variants from files: what the Rollout names and the files do
// not have is made up, long waits are shortened, and what the lab cannot play is left
// out or stays without effect. Each of these is a sentence in [Notes]; nothing of it
// happens silently. Input that cannot be played is a [Refusal] with file, line and
// remedy. Reading and judging YAML is the work of package lint; what it passes over, as
// objects of other kinds, is unknown here.
//
// [Play] runs one [Scenario] with both variants at the same time, under one controller,
// and begins both at the same moment. The controller, the API server and the plugin are
// the real ones; pods are played by kwok, which follows [Settings]. What is [Played] can
// be kept as JSON: judging and showing it again are pure.
//
// What a timeline is, its measures, table and picture belong to package timeline, the
// control plane to package lab, the rule that the plugin is held against to package
// scenarios. There is no mesh here: what is judged is the weight that is written, not
// what proxies make of it.
package simulate
