package simulate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// Notes are sentences on how what is played differs from the files. Each is written down
// where the files are fitted to the lab, so that nothing of it happens silently.
type Notes struct {
	// Applied are the objects of the files that are in the lab, besides the Rollout; no
	// other is, of whatever kind.
	Applied []string `json:"applied,omitempty"`
	MadeUp  []string `json:"madeUp,omitempty"`
	Changed []string `json:"changed,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`
	// NoEffect is what is there as it was written, and nobody in the lab heeds it.
	NoEffect []string `json:"noEffect,omitempty"`
	// Lint is what the linter has to say besides, as a count; empty if nothing.
	Lint string `json:"lint,omitempty"`
}

func (n *Notes) madeUp(format string, args ...any)   { add(&n.MadeUp, format, args...) }
func (n *Notes) changed(format string, args ...any)  { add(&n.Changed, format, args...) }
func (n *Notes) leftOut(format string, args ...any)  { add(&n.LeftOut, format, args...) }
func (n *Notes) noEffect(format string, args ...any) { add(&n.NoEffect, format, args...) }

// add keeps each sentence once.
func add(list *[]string, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// notApplied says what of the files is in the lab, and names what a reader may expect
// there and is not: autoscalers, and objects of the kinds that are applied. Of other
// kinds nobody has kept what the files hold.
func (d *deriver) notApplied() {
	isApplied := map[string]bool{d.source.String(): true}
	for _, s := range d.applied {
		isApplied[s.String()] = true
		add(&d.notes.Applied, "%s", d.called(s))
	}
	slices.Sort(d.notes.Applied)
	var unnamed []string
	for _, s := range d.sources {
		switch {
		case isApplied[s.String()]:
		case d.scaledBy(s):
			d.notes.leftOut("%s%s: autoscalers are not played; what counts is spec.replicas, here %d, and --scenario scale plays a change of it",
				d.called(s), bounds(s), replicasOf(&d.ro))
		case routes(s):
			unnamed = append(unnamed, d.called(s))
		}
	}
	if len(unnamed) > 0 {
		d.notes.leftOut("%s: the Rollout does not lead there", firstOf(unnamed, 5))
	}
}

// called is the object's name for a reader who knows the Rollout's namespace.
func (d *deriver) called(s lint.Source) string {
	if s.Namespace() != d.source.Namespace() {
		return s.String()
	}
	kind, _, _ := strings.Cut(s.String(), " ")
	return kind + " " + s.Name()
}

// routes tells the kinds of which a reader may think that they matter here.
func routes(s lint.Source) bool {
	return s.Is(istioGroup, "VirtualService") || s.Is(istioGroup, "DestinationRule") || s.Is(istioGroup, "ServiceEntry") ||
		s.Is("", "Service") || s.Is(argoGroup, "Rollout")
}

// scaledBy tells an autoscaler of the Rollout.
func (d *deriver) scaledBy(s lint.Source) bool {
	target := at(s.Content(), "spec", "scaleTargetRef")
	return (s.Is("autoscaling", "HorizontalPodAutoscaler") || s.Is("keda.sh", "ScaledObject")) &&
		s.Namespace() == d.source.Namespace() && at(target, "kind") == "Rollout" && at(target, "name") == d.source.Name()
}

// bounds are those of an autoscaler, as far as it has them.
func bounds(s lint.Source) string {
	least, most := at(s.Content(), "spec", "minReplicas"), at(s.Content(), "spec", "maxReplicas")
	if s.Is("keda.sh", "ScaledObject") {
		least, most = at(s.Content(), "spec", "minReplicaCount"), at(s.Content(), "spec", "maxReplicaCount")
	}
	var words []string
	if least != nil {
		words = append(words, fmt.Sprint("from ", least))
	}
	if most != nil {
		words = append(words, fmt.Sprint("up to ", most))
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, " ") + ")"
}

// firstOf names some, and counts the rest.
func firstOf(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
