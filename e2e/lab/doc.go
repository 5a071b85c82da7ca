// Package lab runs a real Kubernetes control plane without containers, for
// tests and demonstrations of the plugin: etcd, kube-apiserver,
// kube-controller-manager, kwok in place of kubelets, and any number of Argo
// Rollouts controllers with or without the plugin.
//
// A test starts one Lab, shares it, and gives each scenario a namespace of its
// own:
//
//	l, err := lab.Start(ctx, lab.Options{})
//	defer l.Stop()
//	c, err := l.StartController(ctx, lab.ControllerOptions{Version: "v1.10.1", PluginPath: plugin})
//	ns, err := l.Namespace(ctx, "canary")
//	_, err = l.Apply(ctx, ns, manifests)
//
// A program that plays something and ends again has [WithPlugin] do all but the last two.
//
// # Binaries
//
// Every program is built from its Go module, at the version that the module's
// go.mod under e2e/components asks for, into e2e/.bin; see [Build]. With
// KUBEBUILDER_ASSETS set, etcd and kube-apiserver are taken from that folder.
//
// # Pods
//
// There is no scheduler and no kubelet. A pod without a node is bound to
// [NodeName] by the lab; kwok then plays the kubelet by the stages in
// stages.yaml. A pod is ready half a second after it runs, unless its
// annotations say otherwise: see [ReadyAfter], [NeverReady], [Unready], [Gated]
// and [Grace]. [Lab.SetUnready] makes running pods fail and recover, and [Lab.Gate]
// decides how many pods of a ReplicaSet ever become ready, which annotations of
// a pod template cannot say without changing the template's hash.
//
// # Controllers
//
// Each controller has a namespace, a working folder, ports and a service
// account of its own, with exactly the ClusterRole that its release ships.
// Controllers side by side are told apart by instance id: a Rollout carries
// [Controller.Labels]. A [Proxy] stands between a controller, or only its
// plugin, and the API server, to play outages; [Lab.KillAPIServer] takes it away
// from everybody.
//
// # Istiod
//
// [Lab.StartIstiod] runs Istio's control plane beside the rest. It serves what the
// stored objects say; nobody sends anything by it in this package.
//
// # Prometheus
//
// [Lab.StartPrometheus] runs any number of them. Each scrapes what the test names.
//
// # What is left behind
//
// Nothing: [Lab.Stop] ends every process, and a small watcher ends them when
// the process that holds the lab dies without calling it. Only with
// Options.KeepFiles, or after such a death, logs stay in the temporary folder.
//
// # What it does not do
//
// There is no data plane: nothing answers at a pod's address, and nobody asks.
// That is the matter of package mesh. Recording what happened and judging it
// belongs to other packages.
package lab
