package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/cluster"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/metrics"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/router"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/rpcedge"
)

// options are the operator's choices, from `args` in the ConfigMap.
type options struct {
	help, version bool
	kubeconfig    string
	cluster       cluster.Options
	qps           float32
	burst         int
	rpcTimeout    time.Duration
	level         hclog.Level
	router        router.Options
	// istiod is whom to ask what the mesh is served.
	istiod mesh.Options
	// prometheus is whom to ask for the numbers of a health gate.
	prometheus prometheus.Options
	// metricsAddress is where metrics are served; empty: nowhere.
	metricsAddress string
}

// newFlags returns the flags and the options that parsing fills.
func newFlags() (*pflag.FlagSet, *options) {
	o := &options{level: hclog.Info}
	o.router.Config.ExecutablePath = os.Args[0]
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SortFlags = false
	// The caller prints: pflag would write to stdout, where the handshake goes.
	f.Usage = func() {}
	f.BoolVarP(&o.help, "help", "h", false, "show this text")
	f.BoolVar(&o.version, "version", false, "show the version")
	f.Var(levelValue{&o.level}, "log-level", "trace, debug, info, warn or error")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty: KUBECONFIG, else the Pod's service account")
	f.StringVar(&o.cluster.Namespace, "namespace", "", "watch this namespace only, for a controller installed with --namespaced; in the cluster of the mesh, too; empty: all")
	f.StringVar(&o.cluster.MeshKubeconfig, "mesh-kubeconfig", "", "path of a kubeconfig of the cluster in which VirtualServices and DestinationRules live, if it is another one; read again when it changes")
	f.StringVar(&o.cluster.MeshSecretNamespace, "mesh-secret-namespace", "", "the same, from the Secret with the label istio.argoproj.io/primary-cluster=true in this namespace; read again when it changes; empty: no such Secret is looked for")
	f.Float32Var(&o.qps, "kube-qps", 50, "requests per second to the API server")
	f.IntVar(&o.burst, "kube-burst", 100, "requests to the API server that may come at once")
	f.DurationVar(&o.rpcTimeout, "rpc-timeout", rpcedge.DefaultTimeout, "how long one call of the controller may take")
	f.StringVar(&o.metricsAddress, "metrics-address", "", "where to serve Prometheus metrics at /metrics, as in :8082; empty: nowhere")
	bindIstiod(f, &o.istiod)
	bindPrometheus(f, &o.prometheus, &o.router.Config.Prometheus)
	f.StringVar(&o.router.Config.PluginName, "plugin-name", "", "the name under which the plugin is registered; empty: from the path of the binary")
	f.StringVar(&o.router.ClusterDomain, "cluster-domain", "cluster.local", "the cluster's DNS domain, to recognise full host names")
	f.Var(namespacesValue{&o.router.Config.CrossNamespace}, "allow-cross-namespace", "namespaces whose VirtualServices and DestinationRules a Rollout of another namespace may name: a list (a,b) or *")
	return f, o
}

// check refuses what would make every call fail.
func (o *options) check(flags *pflag.FlagSet) error {
	var errs []error
	rest := flags.Args()
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("%q is no flag: each of the args is one flag with its value, as in --namespace=shop", rest))
	}
	if namespace := o.cluster.Namespace; namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		errs = append(errs, fmt.Errorf("--namespace %q: this is no name of a namespace", namespace))
	}
	if o.qps <= 0 || o.burst <= 0 {
		errs = append(errs, fmt.Errorf("--kube-qps %v and --kube-burst %d: both must be above 0", o.qps, o.burst))
	}
	if o.rpcTimeout < time.Second {
		errs = append(errs, fmt.Errorf("--rpc-timeout %s: must be at least 1s", o.rpcTimeout))
	}
	if file, namespace := o.cluster.MeshKubeconfig, o.cluster.MeshSecretNamespace; file != "" && namespace != "" {
		errs = append(errs, fmt.Errorf("--mesh-kubeconfig %s and --mesh-secret-namespace %s: the cluster of the mesh has one kubeconfig, leave one of the two", file, namespace))
	}
	if namespace := o.cluster.MeshSecretNamespace; namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		errs = append(errs, fmt.Errorf("--mesh-secret-namespace %q: this is no name of a namespace", namespace))
	}
	if o.metricsAddress != "" {
		if err := metrics.CheckAddress(o.metricsAddress); err != nil {
			errs = append(errs, fmt.Errorf("--metrics-address: %w", err))
		}
	}
	if err := checkIstiod(flags, o.istiod); err != nil {
		errs = append(errs, err)
	}
	if err := checkPrometheus(o.prometheus); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// levelValue makes an hclog level a flag that refuses unknown words.
type levelValue struct{ level *hclog.Level }

func (v levelValue) String() string {
	if v.level == nil {
		return ""
	}
	return v.level.String()
}

func (v levelValue) Type() string { return "level" }

func (v levelValue) Set(s string) error {
	level := hclog.LevelFromString(s)
	if level == hclog.NoLevel {
		return fmt.Errorf("%q is none of trace, debug, info, warn, error", s)
	}
	*v.level = level
	return nil
}

// namespacesValue makes --allow-cross-namespace a flag that refuses what is no
// namespace.
type namespacesValue struct{ allowed *config.CrossNamespace }

func (v namespacesValue) String() string {
	if v.allowed == nil {
		return ""
	}
	return v.allowed.String()
}

func (v namespacesValue) Type() string { return "namespaces" }

func (v namespacesValue) Set(s string) error {
	allowed, err := config.ParseCrossNamespace(s)
	if err != nil {
		return err
	}
	*v.allowed = allowed
	return nil
}
