package mesh

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// authority signs certificates of istiod.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"cluster.local"}}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// serverOption makes a server speak TLS with a certificate for this name.
func (a authority) serverOption(t *testing.T, name string) grpc.ServerOption {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}))
}

// tokenOf is a token of a service account of that namespace; nobody checks its signature here.
func tokenOf(namespace, more string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte("{}")) + "." + encode([]byte(`{"aud":["istio-ca"],"sub":"system:serviceaccount:`+namespace+`:argo-rollouts"}`)) + "." + encode([]byte(more))
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// secure are options for a server with TLS; the files are in a folder of the test's own.
func secure(t *testing.T, s *istiod, root []byte, token string) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{Address: s.addr, TokenFile: filepath.Join(dir, "token"), RootCertFile: filepath.Join(dir, "root.pem")}
	write(t, o.TokenFile, []byte(token+"\n"))
	write(t, o.RootCertFile, root)
	return o
}

func TestOverTLSTheTokenGoesAlongAndDecidesTheNamespace(t *testing.T) {
	ca := newAuthority(t)
	s := startIstiod(t, "127.0.0.1:0", ca.serverOption(t, DefaultServerName))
	s.setAll(t)
	token := tokenOf("argo", "first")
	options := secure(t, s, ca.pem, token)
	c := start(t, options)
	c.Follow("a", "shop", want)
	c.Follow("b", "edge", want)
	await(t, c, "a", "everything", func(s Served) bool { return s.Answered(want) })
	await(t, c, "b", "everything", func(s Served) bool { return s.Answered(want) })
	if n := s.connected(); n != 1 {
		t.Errorf("%d streams for the one namespace of the token", n)
	}
	if got := s.node().GetMetadata().GetFields()["NAMESPACE"].GetStringValue(); got != "argo" {
		t.Errorf("the node is of namespace %q", got)
	}
	if got := c.Namespace("shop"); got != "argo" {
		t.Errorf("the view is that of namespace %q", got)
	}
	if want := []string{"Bearer " + token}; !slices.Equal(s.seen(), want) {
		t.Errorf("tokens %q, want %q", s.seen(), want)
	}
	// The next stream has the token of by then.
	second := tokenOf("argo", "second")
	write(t, options.TokenFile, []byte(second))
	s.server.Stop()
	s.serve(t, s.addr, ca.serverOption(t, DefaultServerName))
	eventually(t, "a stream with the token that was written", func() bool { return slices.Contains(s.seen(), "Bearer "+second) })
	await(t, c, "a", "everything again", func(s Served) bool { return s.Answered(want) })
}

func TestWhatKeepsAConnectionWithTLSFromBeingMadeIsSaidAndCanBeRepaired(t *testing.T) {
	ca := newAuthority(t)
	for sentence, tc := range map[string]struct {
		breaks func(*testing.T, *Options)
		want   string
	}{
		"no token":                       {func(t *testing.T, o *Options) { remove(t, o.TokenFile) }, "the token for istiod: open"},
		"an empty token":                 {func(t *testing.T, o *Options) { write(t, o.TokenFile, []byte(" \n")) }, "is empty"},
		"a token of nobody":              {func(t *testing.T, o *Options) { write(t, o.TokenFile, []byte("a.b.c")) }, "holds no token of a service account"},
		"no root certificate":            {func(t *testing.T, o *Options) { remove(t, o.RootCertFile) }, "istiod's root certificate: open"},
		"a root certificate that is not": {func(t *testing.T, o *Options) { write(t, o.RootCertFile, []byte("?")) }, "holds no certificate in PEM"},
		"that of somebody else":          {func(t *testing.T, o *Options) { write(t, o.RootCertFile, newAuthority(t).pem) }, "unknown authority"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := startIstiod(t, "127.0.0.1:0", ca.serverOption(t, DefaultServerName))
			s.setAll(t)
			options := secure(t, s, ca.pem, tokenOf("argo", ""))
			tc.breaks(t, &options)
			c := start(t, options)
			c.Follow("rollout", "shop", want)
			var err error
			eventually(t, "an error", func() bool {
				_, err = c.Served("rollout")
				return err != nil
			})
			if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
			if tokens := s.seen(); len(tokens) > 0 {
				t.Errorf("a token was sent: %q", tokens)
			}
			write(t, options.TokenFile, []byte(tokenOf("argo", "")))
			write(t, options.RootCertFile, ca.pem)
			await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestACertificateForAnotherNameIsRefusedUnlessTheNameIsGiven(t *testing.T) {
	ca := newAuthority(t)
	s := startIstiod(t, "127.0.0.1:0", ca.serverOption(t, "istiod-canary.istio-system.svc"))
	s.setAll(t)
	options := secure(t, s, ca.pem, tokenOf("argo", ""))
	c := start(t, options)
	c.Follow("rollout", "shop", want)
	eventually(t, "an error", func() bool {
		_, err := c.Served("rollout")
		return err != nil && strings.Contains(err.Error(), "not istiod.istio-system.svc")
	})
	options.ServerName = "istiod-canary.istio-system.svc"
	named := start(t, options)
	named.Follow("rollout", "shop", want)
	await(t, named, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
}

func TestATokenIsNeverSentInTheClear(t *testing.T) {
	s := startIstiod(t, "127.0.0.1:0")
	s.setAll(t)
	options := secure(t, s, newAuthority(t).pem, tokenOf("argo", ""))
	options.Plaintext = true
	c := start(t, options)
	c.Follow("rollout", "shop", want)
	await(t, c, "rollout", "everything", func(s Served) bool { return s.Answered(want) })
	if tokens := s.seen(); tokens[0] != "" {
		t.Errorf("the token %q was sent", tokens[0])
	}
	if got := c.Namespace("shop"); got != "shop" {
		t.Errorf("over plain text the view is that of %q", got)
	}
}

func TestWhoseTokenItIs(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	token := func(claims string) string { return "h." + encode([]byte(claims)) + ".s" }
	for content, want := range map[string]string{
		tokenOf("argo", ""):                            "argo",
		token(`{"sub":"system:serviceaccount:a-b:c"}`): "a-b",
		token(`{"sub":"system:serviceaccount:a-b"}`):   "",
		token(`{"sub":"system:serviceaccount:a:b:c"}`): "",
		token(`{"sub":"user"}`):                        "",
		token(`{"sub":5}`):                             "",
		token(`[`):                                     "",
		"h.%%%.s":                                      "",
		"":                                             "",
		encode([]byte(`{"sub":"system:serviceaccount:a:b"}`)): "",
	} {
		if got := namespaceOf(content); got != want {
			t.Errorf("%q is of %q, want %q", content, got, want)
		}
	}
	missing := New(Options{Address: "istiod:15012", TokenFile: filepath.Join(t.TempDir(), "none")}, hclog.NewNullLogger())
	if got := missing.Namespace("shop"); got != "shop" {
		t.Errorf("without a token the view is that of %q", got)
	}
}

func TestAddressesThatCannotWork(t *testing.T) {
	for address, want := range map[string]string{
		"": "", "istiod.istio-system.svc:15012": "", "[::1]:15012": "", "10.0.0.1:443": "",
		"istiod": "must be host:port", ":15012": "must be host:port", "istiod:": "must be host:port", "a:b:c": "must be host:port",
		"istiod:15010": "use 15012, or add --istiod-plaintext",
	} {
		err := Options{Address: address}.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
	if err := (Options{Address: "istiod:15010", Plaintext: true}).Check(); err != nil {
		t.Error(err)
	}
}

func TestTheClustersNameIsToldTwice(t *testing.T) {
	ca := newAuthority(t)
	s := startIstiod(t, "127.0.0.1:0", ca.serverOption(t, DefaultServerName))
	options := secure(t, s, ca.pem, tokenOf("argo", ""))
	options.Cluster, options.ClusterDomain = "west", "example.org"
	metadata, err := options.GetRequestMetadata(t.Context())
	if err != nil || metadata["clusterid"] != "west" {
		t.Errorf("metadata %v, %v", metadata, err)
	}
	node := options.withDefaults().node("shop", generator)
	if got := node.GetMetadata().GetFields()["CLUSTER_ID"].GetStringValue(); got != "west" || !strings.HasSuffix(node.GetId(), "~shop.svc.example.org") {
		t.Errorf("node %v", node)
	}
}
