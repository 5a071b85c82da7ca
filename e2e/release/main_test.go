package release

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// patience bounds one test. A good run takes a tenth of it; the machines that run
// the tests are small and shared.
const patience = 2 * time.Minute

var (
	shared *lab.Lab
	// built is the path of the plugin as people get it.
	built string
)

// asProtocol makes the test binary a plugin for another host: the controller
// starts it with this argument and a number.
const asProtocol = "--serve-protocol="

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], asProtocol) {
		serveProtocol(strings.TrimPrefix(os.Args[1], asProtocol))
		return
	}
	os.Exit(runTests(m))
}

// serveProtocol does what a plugin does that was built for a host with that version
// of the protocol.
func serveProtocol(version string) {
	handshake := goplugin.HandshakeConfig{MagicCookieKey: "ARGO_ROLLOUTS_RPC_PLUGIN", MagicCookieValue: "trafficrouter"}
	if _, err := fmt.Sscan(version, &handshake.ProtocolVersion); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goplugin.Serve(&goplugin.ServeConfig{HandshakeConfig: handshake, Plugins: goplugin.PluginSet{}})
}

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	ctx := context.Background()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	return m.Run()
}

func start(ctx context.Context) (err error) {
	if built, err = lab.BuildPlugin(ctx, lab.PluginOptions{}); err != nil {
		return err
	}
	if err := lab.Build(ctx, os.Stderr, lab.Rollouts(lab.DefaultVersion)); err != nil {
		return err
	}
	if shared, err = lab.Start(ctx, lab.Options{}); err != nil {
		return err
	}
	return authorize(ctx)
}

// authorize gives the rights of the stock ClusterRole to all service accounts: each
// test has a namespace of its own, with a controller in it.
func authorize(ctx context.Context) error {
	role, err := lab.ClusterRole(ctx, lab.DefaultVersion)
	if err != nil {
		return err
	}
	manifest, err := yaml.Marshal(role)
	if err != nil {
		return err
	}
	manifest = fmt.Appendf(manifest, `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: controllers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:serviceaccounts"}]
`, role.Name)
	_, err = shared.Apply(ctx, "default", manifest)
	return err
}
