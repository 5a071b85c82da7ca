package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// Report is what is told of one Rollout at one moment. The names of its fields in JSON and
// YAML stay as they are; new ones may come. All weights are in parts of weights.max, but for
// those of routes, which are as they are written.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// At is when it was looked at. It is the only field that differs between two looks
	// at a Rollout about which nothing has changed.
	At time.Time `json:"at"`
	// Waiting is one sentence, which begins with "Waits for".
	Waiting string `json:"waiting"`
	// Unread are the rights and kinds that are missing, without which not all could be
	// told; empty if nothing is.
	Unread   string    `json:"unread,omitempty"`
	Findings []Finding `json:"findings"`
	Rollout  Rollout   `json:"rollout"`
	// Weights is absent where the plugin refuses the Rollout, and with Unread.
	Weights         *Weights         `json:"weights,omitempty"`
	VirtualServices []VirtualService `json:"virtualServices,omitempty"`
	Sides           []Side           `json:"sides,omitempty"`
	Mesh            *Mesh            `json:"mesh,omitempty"`
	Pending         []Pending        `json:"pending,omitempty"`
	// Events are the newest about the Rollout, the newest first.
	Events []Event `json:"events,omitempty"`
	// Notes are what could not be read, and what follows.
	Notes []string `json:"notes,omitempty"`
}

// MarshalJSON writes what is no letter, mark or sign as an escape.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report // has no methods
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain(r)); err != nil {
		return nil, err
	}
	return EscapeJSON(strings.TrimSuffix(raw.String(), "\n")), nil
}

// EscapeJSON is JSON with what is no letter, mark or sign as an escape, line ends left as
// they are: names and texts of files and Events may have any character, and of those YAML
// takes some in escapes only, and a terminal obeys some.
func EscapeJSON(text string) []byte {
	var escaped bytes.Buffer
	for _, one := range text {
		if unicode.IsPrint(one) || one == '\n' || one > 0xFFFF {
			escaped.WriteRune(one)
		} else {
			fmt.Fprintf(&escaped, `\u%04x`, one)
		}
	}
	return escaped.Bytes()
}

// Finding is something that is held, or wrong.
type Finding struct {
	// Severity is error for what somebody has to correct, warning for what is held or
	// not as it should be, info for what is worth knowing.
	Severity lint.Severity `json:"severity"`
	Message  string        `json:"message"`
}

// Rollout is what its own object says.
type Rollout struct {
	Phase   string `json:"phase,omitempty"`
	Message string `json:"message,omitempty"`
	// Way is canary, rollback (within rollbackWindow), back (to the stable), full
	// (promoted in full by a person), first (nothing is stable yet) or idle.
	Way     string `json:"way"`
	Paused  bool   `json:"paused"`
	Aborted bool   `json:"aborted"`
	// Step is the current step, from 1; 0 without steps, and Steps+1 when all are done.
	Step  int `json:"step"`
	Steps int `json:"steps"`
	// StepText is what the step is.
	StepText string `json:"stepText,omitempty"`
	// Canary and Stable are the pod-template hashes of the status.
	Canary   string `json:"canary,omitempty"`
	Stable   string `json:"stable,omitempty"`
	Replicas int32  `json:"replicas"`
}

// Weights are the canary's.
type Weights struct {
	Max int32 `json:"max"`
	// Asked is what the controller asks for at this moment; Silent is why it does not
	// ask, empty if it does. Recorded is what the status says, absent if it says nothing.
	Asked    int32  `json:"asked"`
	Silent   string `json:"silent,omitempty"`
	Recorded *int32 `json:"recorded,omitempty"`
	// Verified is what VerifyWeight last answered, by the status.
	Verified *bool `json:"verified,omitempty"`
	// Applied is what is written in the VirtualServices, of several routes the highest;
	// absent where a route has no weights. Uniform is false where routes differ.
	Applied *int32 `json:"applied,omitempty"`
	Uniform bool   `json:"uniform"`
	// Allowed is what the guard allows, Reason its code, Why its sentence. Guard is its
	// mode: outside of Enforce nothing is held.
	Allowed int32  `json:"allowed"`
	Reason  string `json:"reason"`
	Why     string `json:"why"`
	Guard   string `json:"guard"`
	// Next is what the plugin would write at this moment.
	Next int32 `json:"next"`
}

// VirtualService is one with the routes that are handled.
type VirtualService struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Routes    []Route        `json:"routes"`
	Managed   []ManagedRoute `json:"managedRoutes,omitempty"`
}

// Route is one handled route.
type Route struct {
	Route        string        `json:"route"`
	Destinations []Destination `json:"destinations"`
}

// Destination is one destination of a route. Role is canary, stable, experiment or foreign.
type Destination struct {
	Role   string `json:"role"`
	Host   string `json:"host"`
	Subset string `json:"subset,omitempty"`
	Weight int64  `json:"weight"`
}

// ManagedRoute is a header or mirror route of the Rollout's steps.
type ManagedRoute struct {
	Name    string `json:"name"`
	Wanted  bool   `json:"wanted"`
	Present bool   `json:"present"`
}

// Side is one end of the split.
type Side struct {
	// Role is canary or stable.
	Role string `json:"role"`
	// Object is "DestinationRule ns/name" or "Service ns/name".
	Object string `json:"object"`
	Subset string `json:"subset,omitempty"`
	// Hash is what it names, Wanted what it should; Right is false if they differ.
	Hash   string `json:"hash,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	Right  bool   `json:"right"`
	// Waits is why it does not name Wanted yet.
	Waits string `json:"waits,omitempty"`
	// HashUnknown is why Hash could not be read, empty if it could. The pods are then
	// those of Wanted. PodsUnknown is why the pods are not known: ReplicaSet, Available
	// and Size then say nothing.
	HashUnknown string `json:"hashUnknown,omitempty"`
	PodsUnknown string `json:"podsUnknown,omitempty"`
	// Available are the pods that its requests can reach, Size is what the ReplicaSet is
	// scaled to, Intended what the Rollout wants for this side at this step: while it
	// scales, they differ. Intended is absent where that cannot be told.
	ReplicaSet string `json:"replicaSet,omitempty"`
	Available  int32  `json:"available"`
	Size       int32  `json:"size"`
	Intended   *int32 `json:"intended,omitempty"`
	// Endpoints are those that are ready behind the Service; absent where that is not
	// known.
	Endpoints *int `json:"endpoints,omitempty"`
}

// Mesh is what istiod serves.
type Mesh struct {
	// Error is why that is not known.
	Error    string        `json:"error,omitempty"`
	Routes   []MeshRoute   `json:"routes,omitempty"`
	Clusters []MeshCluster `json:"clusters,omitempty"`
	// Waiting is what is served otherwise than it is written.
	Waiting string `json:"waiting,omitempty"`
	// Hidden is what of the routing cannot be seen by asking istiod.
	Hidden []string `json:"hidden,omitempty"`
}

// MeshRoute is one route of a host and port, as it is served.
type MeshRoute struct {
	Host     string        `json:"host"`
	Port     uint32        `json:"port"`
	Route    string        `json:"route"`
	Clusters []MeshWeights `json:"clusters,omitempty"`
}

// MeshWeights is a cluster's share of a route.
type MeshWeights struct {
	Cluster string `json:"cluster"`
	Weight  uint32 `json:"weight"`
}

// MeshCluster is one cluster.
type MeshCluster struct {
	Name      string `json:"name"`
	Exists    bool   `json:"exists"`
	Endpoints int    `json:"endpoints"`
	Healthy   int    `json:"healthy"`
}

// Pending is something that keeps, or may keep, the Rollout.
type Pending struct {
	// What is hold, pin, labels, first request, verification or health gate.
	What string `json:"what"`
	Text string `json:"text"`
}

// Event is one Event about the Rollout.
type Event struct {
	// Last is when it was last seen, in whole seconds.
	Last    time.Time `json:"last"`
	Count   int32     `json:"count"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// Worst is the highest severity of the findings, 0 without any.
func (r Report) Worst() lint.Severity {
	worst := lint.Severity(0)
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}
