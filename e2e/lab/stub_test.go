package lab

import (
	"context"
	"flag"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
	goplugin "github.com/hashicorp/go-plugin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// stubVariable makes the test binary a plugin.
const stubVariable = "LAB_TEST_STUB"

// router is a traffic router that routes nothing: each SetWeight reads a
// ConfigMap named "asked" with the configuration it was given, and fails when
// it cannot.
type router struct{ kubeconfig string }

func (router) InitPlugin() types.RpcError { return types.RpcError{} }
func (router) Type() string               { return "stub" }

func (router) UpdateHash(*v1alpha1.Rollout, string, string, []v1alpha1.WeightDestination) types.RpcError {
	return types.RpcError{}
}

func (r router) SetWeight(ro *v1alpha1.Rollout, _ int32, _ []v1alpha1.WeightDestination) types.RpcError {
	if err := r.ask(ro.Namespace); err != nil {
		return types.RpcError{ErrorString: err.Error()}
	}
	return types.RpcError{}
}

func (r router) ask(namespace string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules() // KUBECONFIG
	rules.ExplicitPath = r.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = client.CoreV1().ConfigMaps(namespace).Get(ctx, "asked", metav1.GetOptions{})
	return err
}

func (router) SetHeaderRoute(*v1alpha1.Rollout, *v1alpha1.SetHeaderRoute) types.RpcError {
	return types.RpcError{}
}

func (router) SetMirrorRoute(*v1alpha1.Rollout, *v1alpha1.SetMirrorRoute) types.RpcError {
	return types.RpcError{}
}

func (router) VerifyWeight(*v1alpha1.Rollout, int32, []v1alpha1.WeightDestination) (types.RpcVerified, types.RpcError) {
	return types.Verified, types.RpcError{}
}

func (router) RemoveManagedRoutes(*v1alpha1.Rollout) types.RpcError { return types.RpcError{} }

// playStub serves the router until the controller ends it.
func playStub(args []string) {
	r := router{}
	flags := flag.NewFlagSet("stub", flag.ExitOnError)
	flags.StringVar(&r.kubeconfig, "kubeconfig", "", "path of a kubeconfig; else KUBECONFIG")
	_ = flags.Parse(args) // exits on error
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "ARGO_ROLLOUTS_RPC_PLUGIN", MagicCookieValue: "trafficrouter"},
		Plugins:         goplugin.PluginSet{"RpcTrafficRouterPlugin": &rpc.RpcTrafficRouterPlugin{Impl: r}},
	})
}
