package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// bindIstiod adds the flags for verify.level Mesh.
func bindIstiod(f *pflag.FlagSet, o *mesh.Options) {
	f.StringVar(&o.Address, "istiod-address", "", "istiod's host:port, for Rollouts with verify.level Mesh, as in istiod.istio-system.svc:15012; empty: istiod is not asked")
	f.BoolVar(&o.Plaintext, "istiod-plaintext", false, "speak to istiod without TLS and token, for its port 15010")
	f.StringVar(&o.TokenFile, "istiod-token-file", mesh.DefaultTokenFile, "path of a service account's token for the audience istio-ca; read for each connection")
	f.StringVar(&o.RootCertFile, "istiod-root-cert", mesh.DefaultRootCertFile, "path of the certificates that istiod's is signed with; read for each connection")
	f.StringVar(&o.ServerName, "istiod-server-name", mesh.DefaultServerName, "the name that istiod's certificate is for")
	f.StringVar(&o.Cluster, "istiod-cluster", "", "the mesh's name of this cluster, for a mesh of several; empty: Kubernetes, as Istio has it")
}

// istiodClient is nil where nobody has said where istiod is. It connects once a Rollout
// asks for verify.level Mesh.
func istiodClient(ctx context.Context, o *options, log hclog.Logger) *mesh.Client {
	if o.istiod.Address == "" {
		return nil
	}
	o.istiod.ClusterDomain = o.router.ClusterDomain
	client := mesh.New(o.istiod, log)
	go client.Run(ctx)
	return client
}

// checkIstiod refuses what istiod would never answer.
func checkIstiod(f *pflag.FlagSet, o mesh.Options) error {
	if err := o.Check(); err != nil {
		return fmt.Errorf("--istiod-address: %w", err)
	}
	for _, name := range []string{"istiod-plaintext", "istiod-token-file", "istiod-root-cert", "istiod-server-name", "istiod-cluster"} {
		if o.Address == "" && f.Changed(name) {
			return errors.New("--" + name + ": of no use without --istiod-address")
		}
	}
	return nil
}
