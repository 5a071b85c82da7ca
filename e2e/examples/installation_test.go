package examples

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// account is the service account of every installation.
const account = "argo-rollouts"

// installation is a controller with the plugin that runs under the rights of an
// overlay's manifests and no others.
type installation struct {
	*lab.Controller
	manifests manifests
}

// install starts a controller as it is before the installation, in the lab's own
// way, and then puts the overlay's manifests in the place of all that it had. edits
// replace texts of the ConfigMap, each of which has to be there: the plugin's
// path, and addresses that do not exist here.
func install(ctx context.Context, overlay, id string, edits map[string]string) (*installation, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	namespace := strings.TrimSuffix(controllerNamespace+"-"+id, "-")
	built, err := render(ctx, overlay, namespace)
	if err != nil {
		return nil, err
	}
	deployment, err := typed[appsv1.Deployment](built, "Deployment", account)
	if err != nil {
		return nil, err
	}
	if err := edit(built, edits); err != nil {
		return nil, err
	}
	// In a pod the controller knows its namespace from the service account's files.
	args := append(deployment.Spec.Template.Spec.Containers[0].Args, "--namespace="+namespace)
	options := lab.ControllerOptions{InstanceID: id, Args: args}
	started, err := shared.StartController(ctx, options)
	if err != nil {
		return nil, err
	}
	i := &installation{Controller: started, manifests: built}
	if i.Namespace != namespace {
		return nil, fmt.Errorf("the lab's controller is in %s, want %s", i.Namespace, namespace)
	}
	if err := i.takeOver(ctx); err != nil {
		return nil, fmt.Errorf("install %s: %w", overlay, err)
	}
	return i, i.Restart(ctx)
}

// edit replaces texts of the plugin's registration.
func edit(m manifests, edits map[string]string) error {
	object := m.find("ConfigMap", "argo-rollouts-config")
	configMap, err := typed[corev1.ConfigMap](m, "ConfigMap", "argo-rollouts-config")
	if err != nil {
		return err
	}
	text := configMap.Data["trafficRouterPlugins"]
	for _, old := range slices.Sorted(maps.Keys(edits)) {
		if !strings.Contains(text, old) {
			return fmt.Errorf("the ConfigMap does not have %q:\n%s", old, text)
		}
		text = strings.ReplaceAll(text, old, edits[old])
	}
	configMap.Data["trafficRouterPlugins"] = text
	object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(configMap)
	return err
}

// takeOver removes the rights that the lab has given and applies the manifests.
func (i *installation) takeOver(ctx context.Context) error {
	bindings := shared.Client.RbacV1().ClusterRoleBindings()
	if err := bindings.Delete(ctx, i.Namespace, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, object := range i.manifests {
		if object.GetKind() == "Deployment" { // the lab is that
			continue
		}
		text, err := yaml.Marshal(i.own(object.DeepCopy().Object))
		if err != nil {
			return err
		}
		if _, err := shared.Apply(ctx, i.Namespace, text); err != nil {
			return err
		}
	}
	return errors.Join(i.awaitRights(ctx), i.checkBindings(ctx))
}

// own puts the namespace in the place of the name of what has none: two
// installations for a whole cluster would take each other's roles away. The accounts of
// ClusterRoleBindings are those of the namespace argo-rollouts, whatever kustomize is
// told.
func (i *installation) own(object map[string]any) map[string]any {
	kind := object["kind"]
	if kind != "ClusterRole" && kind != "ClusterRoleBinding" {
		return object
	}
	rename := func(of map[string]any) {
		of["name"] = strings.Replace(fmt.Sprint(of["name"]), account, i.Namespace, 1)
	}
	rename(object["metadata"].(map[string]any))
	if role, bound := object["roleRef"].(map[string]any); bound {
		rename(role)
	}
	subjects, _ := object["subjects"].([]any)
	for _, subject := range subjects {
		subject.(map[string]any)["namespace"] = i.Namespace
	}
	return object
}

// awaitRights waits until the API server knows the new roles and has forgotten the
// lab's: a controller that comes before gives up.
func (i *installation) awaitRights(ctx context.Context) error {
	config, err := shared.ConfigFor(lab.ServiceAccount(i.Namespace, account))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	everywhere := i.manifests.find("ClusterRoleBinding", account) != nil
	return lab.Until(ctx, "the rights of "+i.Namespace, func(ctx context.Context) (bool, error) {
		here, err := may(ctx, client, i.Namespace)
		if err != nil || !here {
			return false, err
		}
		elsewhere, err := may(ctx, client, metav1.NamespaceAll)
		return elsewhere == everywhere, err
	})
}

// may asks whether a client's user may list pods.
func may(ctx context.Context, client kubernetes.Interface, namespace string) (bool, error) {
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: namespace},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// checkBindings finds every binding of the account: there must be those of the
// manifests and no others, else the tests would show nothing.
func (i *installation) checkBindings(ctx context.Context) error {
	want := map[string]bool{}
	for _, object := range i.manifests {
		if kind := object.GetKind(); kind == "ClusterRoleBinding" || kind == "RoleBinding" {
			metadata := i.own(object.DeepCopy().Object)["metadata"].(map[string]any)
			want[kind+" "+fmt.Sprint(metadata["name"])] = true
		}
	}
	got, err := i.bindings(ctx)
	if err == nil && !maps.Equal(want, got) {
		err = fmt.Errorf("%s is bound by %v, want %v", i.Namespace, got, want)
	}
	return err
}

func (i *installation) bindings(ctx context.Context) (map[string]bool, error) {
	got := map[string]bool{}
	isIts := func(subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == i.Namespace && s.Name == account
		})
	}
	all, err := shared.Client.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, binding := range all.Items {
		if isIts(binding.Subjects) {
			got["ClusterRoleBinding "+binding.Name] = true
		}
	}
	some, err := shared.Client.RbacV1().RoleBindings("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, binding := range some.Items {
		if isIts(binding.Subjects) {
			got["RoleBinding "+binding.Name] = true
		}
	}
	return got, nil
}

// setRules gives other rules to the Role of an installation in one namespace.
func (i *installation) setRules(ctx context.Context, rules []rbacv1.PolicyRule) error {
	roles := shared.Client.RbacV1().Roles(i.Namespace)
	return lab.Until(ctx, "the new rules", func(ctx context.Context) (bool, error) {
		role, err := roles.Get(ctx, account, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		role.Rules = rules
		_, err = roles.Update(ctx, role, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
}
