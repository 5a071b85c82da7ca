package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/inspect"
)

// mostNames bounds how many Rollouts an error lists.
const mostNames = 10

// askForName is the error for a call with no name, or with several: what to write, and which
// Rollouts of the namespace can be named, as far as they can be listed.
func (p *Program) askForName(c *cobra.Command, f *inspectFlags, given int) error {
	ask := "give the name of one Rollout"
	if given > 1 {
		return fmt.Errorf("%s: these are %d", ask, given)
	}
	if _, _, _, err := f.parse(c, "any"); err != nil {
		return fmt.Errorf("%s; and %w", ask, err)
	}
	from, err := p.openInspect(f.target)
	if err != nil {
		return fmt.Errorf("%s (which there are cannot be told: %w)", ask, err)
	}
	var names []string
	err = p.during("listing Rollouts of namespace "+from.Namespace(), func() (err error) {
		names, err = inspect.Names(c.Context(), from, from.Namespace(), f.plugin)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s (which there are in namespace %s cannot be told: %w)", ask, from.Namespace(), err)
	case len(names) == 0:
		return fmt.Errorf("%s; in namespace %s (-n names another) there is none that plugin %s routes", ask, from.Namespace(), f.plugin)
	}
	return fmt.Errorf("%s; in namespace %s (-n names another) plugin %s routes %s", ask, from.Namespace(), f.plugin, some(names, mostNames))
}

// some are the first of the names, and how many more there are.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s … and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
