// Command simulate answers "what will my rollback do?" for a person's own Rollout: it
// plays its steps on a real control plane with the native Istio router and with this
// plugin, side by side, and draws the weight of the canary against what its pods can
// take.
//
// It exits with 0 when all is fine, with 1 when the plugin broke an invariant or came to
// no end, and with 2 when it could not run.
//
// The command only reads flags and files and prints; all else is package simulate.
package main
