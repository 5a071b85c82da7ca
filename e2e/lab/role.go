package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// serviceAccountName is the one that Argo Rollouts' install manifests use.
const serviceAccountName = "argo-rollouts"

// controllerIdentity is what a controller needs beside its ClusterRole: %[1]s
// is its namespace, %[2]s the role.
const controllerIdentity = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ` + serviceAccountName + `, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[2]s}
subjects:
- {kind: ServiceAccount, name: ` + serviceAccountName + `, namespace: %[1]s}
`

// ClusterRole returns the ClusterRole that a release of Argo Rollouts ships,
// with the release added to its name: releases differ in their rights and may
// run side by side.
func ClusterRole(ctx context.Context, version string) (*rbacv1.ClusterRole, error) {
	folder, err := rolloutsFolder(ctx, version)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(folder, "manifests", "role", "argo-rollouts-clusterrole.yaml"))
	if err != nil {
		return nil, err
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(content, role); err != nil {
		return nil, fmt.Errorf("ClusterRole of argo-rollouts %s: %w", version, err)
	}
	role.Name += "-" + version
	return role, nil
}

// authorize creates a controller's namespace and service account, gives it
// exactly the rights of its release, and waits until the API server grants them.
func (l *Lab) authorize(ctx context.Context, version, namespace string) error {
	role, err := ClusterRole(ctx, version)
	if err != nil {
		return err
	}
	manifest, err := yaml.Marshal(role)
	if err != nil {
		return err
	}
	manifest = fmt.Appendf(manifest, "---"+controllerIdentity, namespace, role.Name)
	if _, err := l.Apply(ctx, namespace, manifest); err != nil {
		return err
	}
	return l.awaitRights(ctx, namespace)
}

// awaitRights asks as the controller for the first thing it will do. The API
// server learns of roles by a watch, and a controller that comes before it
// has gives up.
func (l *Lab) awaitRights(ctx context.Context, namespace string) error {
	config, err := l.ConfigFor(ServiceAccount(namespace, serviceAccountName))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: namespace},
	}}
	return Until(ctx, "the rights of "+namespace, func(ctx context.Context) (bool, error) {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
}
