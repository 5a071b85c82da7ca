// Command empty is a traffic router plugin that answers every call at once. It is
// what the real plugin is measured against: all that it costs is the wire.
package main

import (
	goplugin "github.com/hashicorp/go-plugin"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

type router struct{}

func (router) InitPlugin() types.RpcError { return types.RpcError{} }

func (router) Type() string { return "empty" }

func (router) UpdateHash(*v1alpha1.Rollout, string, string, []v1alpha1.WeightDestination) types.RpcError {
	return types.RpcError{}
}

func (router) SetWeight(*v1alpha1.Rollout, int32, []v1alpha1.WeightDestination) types.RpcError {
	return types.RpcError{}
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

func main() {
	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: goplugin.HandshakeConfig{
			ProtocolVersion: 1, MagicCookieKey: "ARGO_ROLLOUTS_RPC_PLUGIN", MagicCookieValue: "trafficrouter",
		},
		Plugins: map[string]goplugin.Plugin{"RpcTrafficRouterPlugin": &rpc.RpcTrafficRouterPlugin{Impl: router{}}},
	})
}
