package simulate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

const (
	argoGroup = "argoproj.io"
	// listed is how many Rollouts a refusal names: a folder may hold those of a company.
	listed = 20
)

// choose finds the Rollout to play; wanted is [NAMESPACE/]NAME, or empty.
func choose(sources []lint.Source, wanted string) (lint.Source, error) {
	var all, found []lint.Source
	for _, s := range sources {
		if !s.Is(argoGroup, "Rollout") {
			continue
		}
		all = append(all, s)
		if wanted == "" || wanted == s.Name() || wanted == s.Namespace()+"/"+s.Name() {
			found = append(found, s)
		}
	}
	switch {
	case len(all) == 0:
		return lint.Source{}, errors.New("there is no Rollout (argoproj.io/v1alpha1) in the files: name one that has it with -f")
	case len(found) == 0:
		return lint.Source{}, fmt.Errorf("there is no Rollout %q in the files; they have\n%s", wanted, choices(all))
	case len(found) > 1:
		return lint.Source{}, fmt.Errorf("%s, and one is played at a time: choose with one of\n%s", several(found), choices(found))
	}
	return found[0], nil
}

// several says whether it is the name that is not enough.
func several(found []lint.Source) string {
	for _, s := range found {
		if s.Name() != found[0].Name() {
			return "there are several Rollouts in the files"
		}
	}
	return fmt.Sprintf("there are Rollouts %q in several namespaces in the files", found[0].Name())
}

// choices are lines with the flag for each of them, and where it stands.
func choices(rollouts []lint.Source) string {
	var lines []string
	for i, s := range rollouts {
		if i == listed {
			lines = append(lines, fmt.Sprintf("    and %d more", len(rollouts)-listed))
			break
		}
		file, line := s.Place("")
		lines = append(lines, fmt.Sprintf("    --rollout %s/%s  (%s:%d)", s.Namespace(), s.Name(), file, line))
	}
	return strings.Join(lines, "\n")
}

// served refuses a version of a kind that API servers with Argo Rollouts and Istio do not
// have, and the lab no more than they.
func served(s lint.Source) error {
	version, _ := s.Content()["apiVersion"].(string)
	known := []string{"v1"}
	switch {
	case s.Is(argoGroup, "Rollout"):
		known = []string{argoGroup + "/v1alpha1"}
	case s.Is(istioGroup, "VirtualService"), s.Is(istioGroup, "DestinationRule"):
		known = []string{istioGroup + "/v1", istioGroup + "/v1beta1", istioGroup + "/v1alpha3"}
	}
	for _, one := range known {
		if version == one {
			return nil
		}
	}
	return refuse(s, "apiVersion", fmt.Sprintf("there is no version %s of this kind, and an API server would not take the object", version),
		"Write apiVersion: "+strings.Join(known, " or ")+".")
}
