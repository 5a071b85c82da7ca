// Package ownership keeps account of what the plugin has added to an Istio object
// for the experiments of a Rollout, in an annotation on that object:
//
//	istio.argoproj-labs.io/experiments: '{"shop/cart": ["cart-7c9b-1-baseline"]}'
//
// Only what stands there under a Rollout's own name may be removed for it. The
// account is on the object and not in the process, so that it survives a restart
// and goes wherever the object goes; it changes in the same patch as what it is
// about. The entries of other Rollouts are kept as they are, even where they cannot
// be read.
//
// The package reads an annotation and computes operations. It does not know what
// the names stand for, looks at nothing but metadata.annotations, and sends nothing.
package ownership
