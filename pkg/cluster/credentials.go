package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// meshSecretLabel marks the Secret with the mesh's kubeconfig. It is that of the
// native router (utils/istio of argo-rollouts).
const meshSecretLabel = "istio.argoproj.io/primary-cluster=true"

// credentials are where the kubeconfig of the mesh's cluster comes from.
type credentials interface {
	// read returns what is there now; it costs no request. An absentError says that
	// there is nothing.
	read() (found, error)
}

// found is a kubeconfig, and where it was found, for people.
type found struct {
	content, origin string
	// path is that of the file, for what is named in it by a relative path; empty if it
	// was in a Secret.
	path string
}

// absentError says that there are no credentials, what was looked for and where.
type absentError struct{ error }

// own are the credentials of the controller: the mesh is in its own cluster.
type own struct{}

func (own) read() (found, error) { return found{}, nil }

// kubeconfigFile is read anew each time: it is small, and a file that a Secret is
// mounted as changes by way of links, which its time does not show.
type kubeconfigFile string

func (path kubeconfigFile) read() (found, error) {
	content, err := os.ReadFile(string(path))
	if errors.Is(err, fs.ErrNotExist) {
		return found{}, absentError{fmt.Errorf("the kubeconfig of the mesh's cluster: %w; it is looked for at every call", err)}
	}
	if err != nil {
		return found{}, fmt.Errorf("the kubeconfig of the mesh's cluster: %w", err)
	}
	return found{content: string(content), origin: "kubeconfig " + string(path), path: string(path)}, nil
}

// kubeconfigSecret watches the Secrets with the label in one namespace.
type kubeconfigSecret struct {
	watched
	namespace string
}

func newKubeconfigSecret(client rest.Interface, namespace string, heard func()) *kubeconfigSecret {
	s := &kubeconfigSecret{watched: watched{name: "secrets"}, namespace: namespace}
	from := typed[*corev1.SecretList]{client, namespace, s.name, func() *corev1.SecretList { return &corev1.SecretList{} }}
	s.informer = newInformer(s.name, from, client, selection{labels: meshSecretLabel},
		&corev1.Secret{}, cache.Indexers{}, heard)
	// Set before the start, so it cannot fail.
	_ = s.informer.SetTransform(stripSecret)
	return s
}

// stripSecret keeps the name and the data.
func stripSecret(object any) (any, error) {
	full, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: full.Name, Namespace: full.Namespace, ResourceVersion: full.ResourceVersion},
		Data:       full.Data,
	}, nil
}

// read may be called once the cache has been filled: what is not there by then is
// absent.
func (s *kubeconfigSecret) read() (found, error) {
	var secrets []*corev1.Secret
	for _, object := range s.informer.GetStore().List() {
		if secret, ok := object.(*corev1.Secret); ok {
			secrets = append(secrets, secret)
		}
	}
	return onlyKubeconfig(s.namespace, secrets)
}

// onlyKubeconfig is the one kubeconfig in the one Secret. Of several none is
// chosen: it would be another one each time.
func onlyKubeconfig(namespace string, secrets []*corev1.Secret) (found, error) {
	if len(secrets) == 0 {
		return found{}, absentError{fmt.Errorf("no Secret with the label %s in namespace %s: one has to hold the kubeconfig of the mesh's cluster; it is looked for at every call",
			meshSecretLabel, namespace)}
	}
	if len(secrets) > 1 {
		var names []string
		for _, secret := range secrets {
			names = append(names, secret.Name)
		}
		slices.Sort(names)
		return found{}, fmt.Errorf("%d Secrets with the label %s in namespace %s (%s): leave the label on one of them",
			len(names), meshSecretLabel, namespace, strings.Join(names, ", "))
	}
	origin := "Secret " + keyOf(namespace, secrets[0].Name)
	keys := slices.Sorted(maps.Keys(secrets[0].Data))
	switch {
	case len(keys) == 0:
		return found{}, fmt.Errorf("%s has no data: it has to hold the kubeconfig of the mesh's cluster under a key of any name", origin)
	case len(keys) > 1:
		return found{}, fmt.Errorf("%s has the keys %s: leave the one with the kubeconfig of the mesh's cluster", origin, strings.Join(keys, ", "))
	}
	return found{content: string(secrets[0].Data[keys[0]]), origin: origin}, nil
}

// config makes a client configuration of a kubeconfig, with the limits and the
// name that the plugin has with its own API server.
func (f found) config(like *rest.Config) (*rest.Config, error) {
	kubeconfig, err := clientcmd.Load([]byte(f.content))
	if err != nil {
		return nil, fmt.Errorf("%s is no kubeconfig: %w", f.origin, err)
	}
	if len(kubeconfig.Clusters) == 0 {
		return nil, fmt.Errorf("%s is no kubeconfig: it has no clusters", f.origin)
	}
	if err := f.resolve(kubeconfig); err != nil {
		return nil, fmt.Errorf("%s: %w", f.origin, err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.origin, err)
	}
	config.QPS, config.Burst, config.UserAgent = like.QPS, like.Burst, like.UserAgent
	return config, nil
}

// resolve takes relative paths as kubectl does: from the folder of the file.
func (f found) resolve(kubeconfig *clientcmdapi.Config) error {
	if f.path == "" {
		return selfContained(kubeconfig)
	}
	for _, cluster := range kubeconfig.Clusters {
		cluster.LocationOfOrigin = f.path
	}
	for _, user := range kubeconfig.AuthInfos {
		user.LocationOfOrigin = f.path
	}
	return clientcmd.ResolveLocalPaths(kubeconfig)
}

// selfContained refuses a kubeconfig from a Secret that names programs or files:
// whoever may write the Secret could run the one and read the other in the
// controller's Pod.
func selfContained(kubeconfig *clientcmdapi.Config) error {
	for name, user := range kubeconfig.AuthInfos {
		if user.Exec != nil || user.AuthProvider != nil {
			return fmt.Errorf("user %q runs a program (exec or auth-provider), which a kubeconfig from a Secret must not: give a token or a certificate, or use --mesh-kubeconfig", name)
		}
		if user.TokenFile+user.ClientCertificate+user.ClientKey != "" {
			return fmt.Errorf("user %q names files (tokenFile, client-certificate, client-key), which a kubeconfig from a Secret must not: give token, client-certificate-data and client-key-data, or use --mesh-kubeconfig", name)
		}
	}
	for name, cluster := range kubeconfig.Clusters {
		if cluster.CertificateAuthority != "" {
			return fmt.Errorf("cluster %q names a file (certificate-authority), which a kubeconfig from a Secret must not: give certificate-authority-data, or use --mesh-kubeconfig", name)
		}
	}
	return nil
}

// shown is the address of an API server without what may be secret in it.
func shown(config *rest.Config) string {
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "with an address that cannot be read"
	}
	return url.Scheme + "://" + url.Host
}
