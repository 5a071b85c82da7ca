package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/backend"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/namespace"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

// Options say how to set a stage.
type Options struct {
	// Plugin is the path of the plugin's binary.
	Plugin string
	// Progress is told what goes on; nil means standard error.
	Progress io.Writer
	// KeepFiles leaves the logs in the temporary folder after Close.
	KeepFiles bool
}

// Stage is a mesh: a control plane, a controller with the plugin, istiod, and
// pods that answer. Its methods may be called concurrently.
type Stage struct {
	Lab     *lab.Lab
	Istiod  *lab.Istiod
	Backend *backend.Backend
	// Controller has the stock rights, and its plugin does not know of istiod.
	Controller *lab.Controller

	plugin   string
	mu       sync.Mutex
	verified *lab.Controller // see controllerOf
}

// Programs are what has to be built before the network namespace is entered.
func Programs() []lab.Component {
	return append(lab.ControlPlane(), lab.Rollouts(lab.DefaultVersion), lab.IstiodProgram)
}

// Open sets the stage. It has to run in a network namespace, see
// [namespace.Run], and everything has to be built. Close it with Close.
func Open(ctx context.Context, options Options) (*Stage, error) {
	if err := namespace.MakeLocal(netip.MustParsePrefix(lab.PodCIDR)); err != nil {
		return nil, err
	}
	l, err := lab.Start(ctx, lab.Options{Progress: options.Progress, KeepFiles: options.KeepFiles})
	if err != nil {
		return nil, err
	}
	s := &Stage{Lab: l, plugin: options.Plugin}
	if err := s.fill(ctx, options); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Stage) fill(ctx context.Context, options Options) (err error) {
	if s.Istiod, err = s.Lab.StartIstiod(ctx, lab.IstiodOptions{}); err != nil {
		return err
	}
	if s.Backend, err = backend.Start(ctx, s.Lab); err != nil {
		return err
	}
	s.Controller, err = s.Lab.StartController(ctx, lab.ControllerOptions{PluginPath: options.Plugin})
	return err
}

// readSlices is what verify.level Mesh needs beyond the stock ClusterRole, for the
// service account of a controller's namespace.
const readSlices = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: argo-rollouts-endpointslices}
rules:
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: argo-rollouts-endpointslices}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: argo-rollouts-endpointslices}
subjects:
- {kind: ServiceAccount, name: argo-rollouts, namespace: %s}
`

// controllerOf is who runs the Rollouts of a router. Verified ones have a
// controller of their own, with the rights and the address that the default does
// without; it is started by the first that needs it.
func (s *Stage) controllerOf(ctx context.Context, router scenarios.Router) (*lab.Controller, error) {
	if router != scenarios.Verified {
		return s.Controller, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verified != nil {
		return s.verified, nil
	}
	c, err := s.Lab.StartController(ctx, lab.ControllerOptions{
		InstanceID: string(router), PluginPath: s.plugin,
		PluginArgs: []string{"--istiod-address=" + s.Istiod.Address, "--istiod-plaintext"},
	})
	if err != nil {
		return nil, err
	}
	_, err = s.Lab.Apply(ctx, c.Namespace, fmt.Appendf(nil, readSlices, c.Namespace))
	s.verified = c
	return c, err
}

// Close ends everything. The error tells what went wrong in the background.
func (s *Stage) Close() error {
	var errs []error
	if s.Backend != nil {
		if err := s.Backend.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("backend: %w", err))
		}
	}
	return errors.Join(append(errs, s.Lab.Stop())...)
}
