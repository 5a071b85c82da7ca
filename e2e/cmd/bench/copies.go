package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/hash"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

var replicaSetResource = appsv1.SchemeGroupVersion.WithResource("replicasets")

// writersAtOnce bounds the requests in flight while objects are made.
const writersAtOnce = 24

// pattern is a Rollout at rest with its ReplicaSets and its routing, as the controller
// left it. Copies of it are at rest, too: the controller finds nothing to do for them.
type pattern struct {
	name   string
	hashes []string // of the ReplicaSets
	// templates are theirs, without the hash.
	templates []corev1.PodTemplateSpec
	// texts are the objects as JSON; the Rollout is the first, and owns the ReplicaSets.
	texts []text
}

// text is one object in which the pattern's name and hashes are to be replaced.
type text struct {
	resource schema.GroupVersionResource
	json     string
}

// readPattern takes the Rollout of that name for one.
func readPattern(ctx context.Context, l *lab.Lab, namespace, name string) (pattern, error) {
	p := pattern{name: name}
	for _, resource := range []schema.GroupVersionResource{rolloutResource, virtualServiceResource, destinationRuleResource} {
		object, err := l.Dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return p, err
		}
		if err := p.add(resource, object); err != nil {
			return p, err
		}
	}
	sets, err := l.Client.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return p, err
	}
	for _, set := range sets.Items {
		if err := p.addSet(set); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *pattern) addSet(set appsv1.ReplicaSet) error {
	p.hashes = append(p.hashes, set.Labels[v1alpha1.DefaultRolloutUniqueLabelKey])
	template := *set.Spec.Template.DeepCopy()
	delete(template.Labels, v1alpha1.DefaultRolloutUniqueLabelKey)
	p.templates = append(p.templates, template)
	set.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}
	body, err := json.Marshal(set)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return err
	}
	return p.add(replicaSetResource, object)
}

// add keeps what can be created anew of an object.
func (p *pattern) add(resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if resource == rolloutResource {
		// A new object is of the first generation.
		if err := unstructured.SetNestedField(object.Object, "1", "status", "observedGeneration"); err != nil {
			return err
		}
	}
	body, err := object.MarshalJSON()
	p.texts = append(p.texts, text{resource, string(body)})
	return err
}

// under is the pattern with another name in place of its own. A hash is that of a pod
// template in which the name stands, so it is another one, too.
func (p pattern) under(name string) ([]*unstructured.Unstructured, error) {
	pairs := []string{p.name, name}
	for i, old := range p.hashes {
		fresh, err := renamed(p.templates[i], p.name, name)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, old, fresh)
	}
	replacer := strings.NewReplacer(pairs...)
	objects := make([]*unstructured.Unstructured, len(p.texts))
	for i, text := range p.texts {
		objects[i] = &unstructured.Unstructured{}
		if err := objects[i].UnmarshalJSON([]byte(replacer.Replace(text.json))); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// renamed is the hash of a template with another name in it.
func renamed(template corev1.PodTemplateSpec, old, fresh string) (string, error) {
	body, err := json.Marshal(template)
	if err != nil {
		return "", err
	}
	other := corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(body), old, fresh)), &other); err != nil {
		return "", err
	}
	return hash.ComputePodTemplateHash(&other, nil), nil
}

// copyNames are those of the copies from a number on, up to but without another.
func copyNames(from, to int) []string {
	var names []string
	for n := from; n < to; n++ {
		names = append(names, fmt.Sprintf("shop-%05d", n))
	}
	return names
}

// create makes copies under those names, some at a time.
func (p pattern) create(ctx context.Context, client dynamic.Interface, namespace string, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writersAtOnce)
	for _, name := range names {
		group.Go(func() error {
			if err := p.createOne(ctx, client, namespace, name); err != nil {
				return fmt.Errorf("copy %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (p pattern) createOne(ctx context.Context, client dynamic.Interface, namespace, name string) error {
	objects, err := p.under(name)
	if err != nil {
		return err
	}
	var owner types.UID
	for i, object := range objects {
		at := client.Resource(p.texts[i].resource).Namespace(namespace)
		if p.texts[i].resource == replicaSetResource {
			object.SetOwnerReferences(ownedBy(name, owner))
		}
		created, err := at.Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if p.texts[i].resource != rolloutResource {
			continue
		}
		owner = created.GetUID()
		created.Object["status"] = object.Object["status"]
		if _, err := at.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func ownedBy(name string, uid types.UID) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Rollout", Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes,
	}}
}
