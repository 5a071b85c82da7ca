package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// assetsVariable names a folder with etcd and kube-apiserver, as setup-envtest
// leaves them, to be used instead of building the two.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Component is one program of the lab, built from one package of a Go module.
// The zero value is of no use; take one of the variables, or [Rollouts].
type Component struct {
	binary string // file name of the program
	folder string // under e2e/components: the module that pins the version
	key    string // first part of the folder's name in e2e/.bin
	module string // whose required version is the component's version
	pkg    string // the main package
	tags   string // build tags, with commas between them
	asset  bool   // KUBEBUILDER_ASSETS may provide it
	stamp  func(version string) string
}

// The programs of the control plane.
var (
	Etcd = Component{binary: "etcd", folder: "etcd", key: "etcd",
		module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3", asset: true}
	Kwok = Component{binary: "kwok", folder: "kwok", key: "kwok",
		module: "sigs.k8s.io/kwok", pkg: "sigs.k8s.io/kwok/cmd/kwok"}
	APIServer         = kubernetesComponent("kube-apiserver", true)
	ControllerManager = kubernetesComponent("kube-controller-manager", false)
)

// IstiodProgram is Istio's control plane; [Lab.StartIstiod] runs it.
var IstiodProgram = Component{binary: "pilot-discovery", folder: "istiod", key: "istiod",
	module: "istio.io/istio", pkg: "istio.io/istio/pilot/cmd/pilot-discovery"}

// PrometheusProgram is Prometheus without the discoveries of the clouds, which are most
// of its build; [Lab.StartPrometheus] runs it.
var PrometheusProgram = Component{binary: "prometheus", folder: "prometheus", key: "prometheus",
	module: "github.com/prometheus/prometheus", pkg: "github.com/prometheus/prometheus/cmd/prometheus", tags: "remove_all_sd"}

const rolloutsModule = "github.com/argoproj/argo-rollouts"

// Rollouts is the Argo Rollouts controller of one release, such as "v1.10.1".
// There has to be a folder components/rollouts-<version>.
func Rollouts(version string) Component {
	return Component{binary: "rollouts-controller", folder: "rollouts-" + version, key: "rollouts",
		module: rolloutsModule, pkg: rolloutsModule + "/cmd/rollouts-controller"}
}

func kubernetesComponent(binary string, asset bool) Component {
	return Component{binary: binary, folder: "kubernetes", key: "kubernetes", module: "k8s.io/kubernetes",
		pkg: "k8s.io/kubernetes/cmd/" + binary, asset: asset, stamp: stampKubernetes}
}

// stampKubernetes sets the version that the API server answers at /version.
// Without it clients cannot parse the answer, and some refuse to work.
func stampKubernetes(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s",
		pkg, version, pkg, parts[0], pkg, parts[1])
}

// ControlPlane lists what [Start] runs, cheapest build first.
func ControlPlane() []Component {
	return []Component{Etcd, Kwok, APIServer, ControllerManager}
}

// TestedReleases are the controllers that the scenarios are tested with: the oldest
// that the plugin supports and the one that it is built against. Each costs a cold
// build; [Releases] has the others, too.
func TestedReleases() []string { return []string{"v1.8.5", DefaultVersion} }

// Components lists what the tests need, in the order in which to build it: what
// cheap tests need comes first, and istiod, which only the mesh needs, last.
func Components() []Component {
	all := ControlPlane()
	for _, release := range TestedReleases() {
		all = append(all, Rollouts(release))
	}
	return append(all, PrometheusProgram, IstiodProgram)
}

// Releases are all controllers there are, oldest first: those with a folder under
// e2e/components.
func Releases() ([]string, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(dir, "components", "rollouts-*"))
	if err != nil {
		return nil, err
	}
	var releases []string
	for _, folder := range folders {
		releases = append(releases, strings.TrimPrefix(filepath.Base(folder), "rollouts-"))
	}
	semver.Sort(releases)
	return releases, nil
}

// Version reads the component's version from its go.mod.
func (c Component) Version() (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	return requiredVersion(c.source(dir), c.module)
}

// Path returns where the component's binary is, or will be after [Build].
func (c Component) Path() (string, error) {
	if assets := os.Getenv(assetsVariable); c.asset && assets != "" {
		return filepath.Join(assets, c.binary), nil
	}
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	version, err := c.Version()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, ".bin", c.key+"-"+version, c.binary), nil
}

// source is the folder of the module that pins the component.
func (c Component) source(dir string) string {
	return filepath.Join(dir, "components", c.folder)
}

// String names the component and its version for people.
func (c Component) String() string {
	version, err := c.Version()
	if err != nil {
		return c.binary
	}
	return c.binary + " " + version
}
