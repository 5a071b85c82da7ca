package lab

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// User is who a client is to the API server.
type User struct {
	Name   string
	Groups []string // beside system:authenticated, which everyone is in
}

// ServiceAccount is the user that pods of a service account are, with the
// groups that the API server gives to such.
func ServiceAccount(namespace, name string) User {
	return User{
		Name:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// ConfigFor returns a client configuration for a user. It has no rights but
// those that RBAC gives to it or to its groups, and no client-side rate limit.
func (l *Lab) ConfigFor(user User) (*rest.Config, error) {
	l.minting.Lock() // envtest's certificate authority is not safe for concurrent use
	defer l.minting.Unlock()
	added, err := l.env.AddUser(envtest.User{Name: user.Name, Groups: user.Groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("client of user %s: %w", user.Name, err)
	}
	return added.Config(), nil
}

// Kubeconfig writes a kubeconfig file for a user and returns its path. With a
// proxy that is not nil the file leads through it.
func (l *Lab) Kubeconfig(user User, through *Proxy) (string, error) {
	config, err := l.ConfigFor(user)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Join(l.dir, "kubeconfigs"), "*.yaml")
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := kubeconfig(config, through)
	if err != nil {
		return "", fmt.Errorf("kubeconfig of user %s: %w", user.Name, err)
	}
	_, err = file.Write(content)
	return file.Name(), err
}

func kubeconfig(config *rest.Config, through *Proxy) ([]byte, error) {
	cluster := &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	if through != nil {
		cluster.Server = (&url.URL{Scheme: "https", Host: through.Addr()}).String()
		cluster.TLSServerName = "localhost" // a name in the API server's certificate
	}
	const name = "lab"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}
