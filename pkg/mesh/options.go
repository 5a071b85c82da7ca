package mesh

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"k8s.io/apimachinery/pkg/types"
)

// The places that Istio's own proxies use.
const (
	DefaultTokenFile    = "/var/run/secrets/tokens/istio-token"
	DefaultRootCertFile = "/var/run/secrets/istio/root-cert.pem"
	DefaultServerName   = "istiod.istio-system.svc"
)

const (
	// plaintextPort is where an installed istiod speaks without TLS.
	plaintextPort = "15010"
	// maxMessage bounds one answer of istiod: 50 000 endpoints fit.
	maxMessage = 16 << 20
	// defaultCluster is the name that Istio gives the cluster that nobody named.
	defaultCluster = "Kubernetes"
)

// adsStream is a stream as a client has it.
type adsStream = discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient

// Options are the operator's choices.
type Options struct {
	// Address is istiod's, as host:port. Empty: there is no istiod to ask.
	Address string
	// Plaintext is for istiod's port 15010. Without it the connection is TLS, and
	// carries the token.
	Plaintext bool
	// TokenFile holds a service account's token for the audience istio-ca. It is read
	// for each stream.
	TokenFile string
	// RootCertFile holds the certificates, in PEM, that istiod's is signed with. It is
	// read for each stream.
	RootCertFile string
	// ServerName is what istiod's certificate is for.
	ServerName string
	// Cluster is the mesh's name of the plugin's cluster; empty: the default,
	// Kubernetes.
	Cluster string
	// ClusterDomain is the DNS domain of full host names; empty: cluster.local.
	ClusterDomain string
	// Patience is how long istiod may take to answer before it counts as unavailable;
	// 0 means 5 s.
	Patience time.Duration
	// Changed is told each Rollout for which something else is served than before. It
	// may be nil, is called from the stream, and must return at once.
	Changed func(rollout types.UID)
}

// Check says what cannot work, before anything is tried.
func (o Options) Check() error {
	if o.Address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(o.Address)
	switch {
	case err != nil || host == "" || port == "":
		return fmt.Errorf("%q must be host:port, such as %s:15012", o.Address, DefaultServerName)
	case port == plaintextPort && !o.Plaintext:
		return errors.New("port 15010 is istiod's without TLS: use 15012, or add --istiod-plaintext")
	}
	return nil
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&o.TokenFile, DefaultTokenFile)
	fill(&o.RootCertFile, DefaultRootCertFile)
	fill(&o.ServerName, DefaultServerName)
	fill(&o.ClusterDomain, "cluster.local")
	if o.Patience == 0 {
		o.Patience = 5 * time.Second
	}
	if o.Changed == nil {
		o.Changed = func(types.UID) {}
	}
	return o
}

// dial prepares a connection. It sends nothing yet.
func (o Options) dial() (*grpc.ClientConn, error) {
	options := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: o.Patience}),
		// A connection that died without a word is noticed; istiod allows one ping in 15 s.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}
	if o.Plaintext {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	} else {
		roots, err := o.roots()
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.WithPerRPCCredentials(o),
			grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: o.ServerName, MinVersion: tls.VersionTLS12})))
	}
	return grpc.NewClient("passthrough:///"+o.Address, options...)
}

// open makes a stream on a connection of its own; end ends both.
func (o Options) open(ctx context.Context) (stream adsStream, end func(), err error) {
	connection, err := o.dial()
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = connection.Close() } // fails only if it has been closed already
	if stream, err = discovery.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return stream, end, nil
}

func (o Options) roots() (*x509.CertPool, error) {
	pem, err := os.ReadFile(o.RootCertFile)
	if err != nil {
		return nil, fmt.Errorf("istiod's root certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("istiod's root certificate: %s holds no certificate in PEM", o.RootCertFile)
	}
	return roots, nil
}

// token reads the token as it is now.
func (o Options) token() (string, error) {
	content, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("the token for istiod: %w", err)
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("the token for istiod: %s is empty", o.TokenFile)
	}
	return token, nil
}

// GetRequestMetadata is credentials.PerRPCCredentials: the token goes with each
// stream.
func (o Options) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := o.token()
	if err != nil {
		return nil, err
	}
	metadata := map[string]string{"authorization": "Bearer " + token}
	if o.Cluster != "" {
		metadata["clusterid"] = o.Cluster
	}
	return metadata, nil
}

// RequireTransportSecurity is credentials.PerRPCCredentials: a token is never sent in
// the clear.
func (o Options) RequireTransportSecurity() bool { return true }

// tokenNamespace is the namespace of the service account that the token is for. The
// token is not checked: istiod does that.
func (o Options) tokenNamespace() (string, error) {
	token, err := o.token()
	if err != nil {
		return "", err
	}
	namespace := namespaceOf(token)
	if namespace == "" {
		return "", fmt.Errorf("the token for istiod: %s holds no token of a service account", o.TokenFile)
	}
	return namespace, nil
}

// namespaceOf reads the subject system:serviceaccount:NAMESPACE:NAME out of a token.
func namespaceOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return ""
	}
	subject := strings.Split(claims.Subject, ":")
	if len(subject) != 4 || subject[0] != "system" || subject[1] != "serviceaccount" {
		return ""
	}
	return subject[2]
}
