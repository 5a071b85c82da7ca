package matrix

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// Ground is what the plugin runs on.
type Ground struct {
	// Controller is the release of Argo Rollouts, such as "v1.10.1".
	Controller string
	// Istio is the only version in which Istio's kinds are served.
	Istio string
}

func (g Ground) String() string { return fmt.Sprintf("controller %s, Istio %s", g.Controller, g.Istio) }

// IstioVersions are those that the plugin knows, newest first.
func IstioVersions() []string { return []string{"v1", "v1beta1", "v1alpha3"} }

// Grounds are all combinations, oldest controller first.
func Grounds() ([]Ground, error) {
	releases, err := lab.Releases()
	if err != nil {
		return nil, err
	}
	var all []Ground
	for _, release := range releases {
		for _, istio := range IstioVersions() {
			all = append(all, Ground{release, istio})
		}
	}
	return all, nil
}

// stage is a control plane of one ground, with the plugin.
type stage struct {
	ground     Ground
	lab        *lab.Lab
	controller *lab.Controller
}

// open builds what is missing and starts it. Close it with close.
func open(ctx context.Context, ground Ground, plugin string, progress io.Writer) (*stage, error) {
	if err := lab.Build(ctx, progress, lab.Rollouts(ground.Controller)); err != nil {
		return nil, err
	}
	l, err := lab.Start(ctx, lab.Options{Progress: progress, RolloutsVersion: ground.Controller, IstioVersion: ground.Istio})
	if err != nil {
		return nil, err
	}
	c, err := l.StartController(ctx, lab.ControllerOptions{Version: ground.Controller, PluginPath: plugin})
	if err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return &stage{ground: ground, lab: l, controller: c}, nil
}

// close ends everything. The error tells what the log has that no log may have.
func (s *stage) close() error {
	lines, err := s.controller.Faults()
	if len(lines) > 0 {
		err = errors.Join(err, fmt.Errorf("%s: in the controller's log, which holds what the plugin says:\n%s", s.ground, strings.Join(lines, "\n")))
	}
	return errors.Join(err, s.lab.Stop())
}
