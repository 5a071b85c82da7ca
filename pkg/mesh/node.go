package mesh

import (
	"fmt"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// nodeName is how the plugin is called in istiod's log and metrics.
const nodeName = "rollouts-plugin-trafficrouter-istio"

// address is the node's: istiod insists on one, and looks for the pod that has it.
// No pod has this one, so no pod's labels, locality or Sidecar come in.
const address = "127.0.0.1"

// generator makes istiod answer by name, as it does for gRPC without a proxy.
const generator = "grpc"

// node is who asks istiod: a workload of the namespace without labels. as is the
// generator of the answers, empty for the sync status.
func (o Options) node(namespace, as string) *core.Node {
	text := structpb.NewStringValue
	fields := map[string]*structpb.Value{
		"NAMESPACE":  text(namespace),
		"CLUSTER_ID": text(defaultCluster),
		// Endpoints by their own addresses, also where the mesh would tunnel.
		"DISABLE_HBONE_SEND": text("true"),
	}
	if o.Cluster != "" {
		fields["CLUSTER_ID"] = text(o.Cluster)
	}
	if as != "" {
		fields["GENERATOR"] = text(as)
	}
	return &core.Node{
		Id:       fmt.Sprintf("sidecar~%s~%s.%s~%s.svc.%s", address, nodeName, namespace, namespace, o.ClusterDomain),
		Metadata: &structpb.Struct{Fields: fields},
	}
}
