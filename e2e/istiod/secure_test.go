package istiod

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// secure is where istiod serves with TLS, as its port 15012 does.
type secure struct{ address, root string }

// newSecured makes certificates for istiod in a folder and returns the arguments with
// which it uses them.
func newSecured(dir string) (secure, []string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return secure{}, nil, err
	}
	s := secure{address: listener.Addr().String(), root: filepath.Join(dir, "root.pem")}
	_ = listener.Close() // it listens only to find a free port
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	return s, []string{"--secureGRPCAddr=" + s.address, "--tlsCertFile=" + cert, "--tlsKeyFile=" + key, "--caCertFile=" + s.root}, s.certify(cert, key)
}

// certify writes a certificate for istiod's name, its key, and the root of both.
func (s secure) certify(certFile, keyFile string) error {
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"cluster.local"}}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{mesh.DefaultServerName}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	cert, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	return errors.Join(err, writePEM(s.root, "CERTIFICATE", root), writePEM(certFile, "CERTIFICATE", cert), writePEM(keyFile, "EC PRIVATE KEY", private))
}

func writePEM(path, kind string, content []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600)
}

// as are the options of a plugin whose controller runs as a service account of a
// namespace.
func (s secure) as(t *testing.T, namespace, audience string) mesh.Options {
	t.Helper()
	accounts := shared.Client.CoreV1().ServiceAccounts(namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "argo-rollouts-"}}
	account, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "istio-token")
	if err := os.WriteFile(file, []byte(token.Status.Token), 0o600); err != nil {
		t.Fatal(err)
	}
	return mesh.Options{Address: s.address, RootCertFile: s.root, TokenFile: file}
}

func TestOverTLSATokenForIstioShowsTheViewOfItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secured.as(t, newNamespace(t), "istio-ca"))
	if got := w.client.Namespace(w.namespace); got == w.namespace {
		t.Errorf("the view is that of %s, want the token's", got)
	}
	w.arrives(t, w.plan(t), "what was applied")
	w.arrives(t, w.setWeight(t, 30), "the weight")
	w.patch(t, virtualServices, `[{"op":"add","path":"/spec/exportTo","value":["."]}]`)
	judge := func(s mesh.Served) (bool, string) { return w.plan(t).Judge(s, w.endpoints(t), w.counts) }
	w.waits(t, judge, "not by VirtualService "+w.namespace+"/web as seen from namespace "+w.client.Namespace(w.namespace))
}

func TestATokenForAnotherAudienceIsRefused(t *testing.T) {
	t.Parallel()
	client := newClient(t, secured.as(t, newNamespace(t), "other"))
	client.Follow(rollout, "shop", mesh.Want{Clusters: []string{"outbound|80||web"}})
	w := &world{}
	w.until(t, "a refusal", func(context.Context) bool {
		_, err := client.Served(rollout)
		return errors.Is(err, mesh.ErrUnavailable) && strings.Contains(err.Error(), "Unauthenticated")
	})
}
