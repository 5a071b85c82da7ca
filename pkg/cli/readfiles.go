package cli

import (
	"context"
	"io"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/lint"
)

// ReadFiles takes into in what names say, as "lint -f" does: files, folders with all
// below them, and - for stdin. It is for commands of other modules. An error is about
// a file that cannot be opened or read; what stands in it is for the linter to judge.
func ReadFiles(ctx context.Context, in *lint.Input, stdin io.Reader, names []string) error {
	p := Program{In: stdin}
	return p.readFiles(ctx, in, names, false)
}
