package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type asking = func(context.Context, schema.GroupVersion) (*metav1.APIResourceList, error)

// serving answers as an API server that serves these kinds, by version.
func serving(versions map[string][]string) asking {
	return func(_ context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
		list := &metav1.APIResourceList{}
		for _, resource := range versions[gv.Version] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource})
		}
		if len(list.APIResources) == 0 {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, gv.String())
		}
		return list, nil
	}
}

func TestTheBestServedVersionOfEachKindIsUsed(t *testing.T) {
	for sentence, tc := range map[string]struct {
		versions      map[string][]string
		vs, dr, fails string
	}{
		"all are served":                  {versions: map[string][]string{"v1": both, "v1beta1": both, "v1alpha3": both}, vs: "v1", dr: "v1"},
		"v1 is not served":                {versions: map[string][]string{"v1beta1": both, "v1alpha3": both}, vs: "v1beta1", dr: "v1beta1"},
		"only the oldest is":              {versions: map[string][]string{"v1alpha3": both}, vs: "v1alpha3", dr: "v1alpha3"},
		"each kind in another":            {versions: map[string][]string{"v1": {"destinationrules"}, "v1alpha3": both}, vs: "v1alpha3", dr: "v1"},
		"other kinds count for nothing":   {versions: map[string][]string{"v1": {"gateways", "virtualservices/status"}, "v1beta1": both}, vs: "v1beta1", dr: "v1beta1"},
		"one kind is missing":             {versions: map[string][]string{"v1": {"virtualservices"}}, fails: "does not serve DestinationRule"},
		"a version nobody knows is there": {versions: map[string][]string{"v2": both}, fails: "does not serve VirtualService"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := servedVersions(context.Background(), serving(tc.versions))
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) || !strings.Contains(err.Error(), "install Istio's CRDs") {
					t.Errorf("error %v, want %q", err, tc.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.vs, tc.dr}, []string{got.virtualServices.Version, got.destinationRules.Version}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnAPIServerThatCannotBeAskedIsNotOneWithoutIstio(t *testing.T) {
	_, err := servedVersions(context.Background(), func(context.Context, schema.GroupVersion) (*metav1.APIResourceList, error) {
		return nil, errors.New("connection refused")
	})
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "install") {
		t.Errorf("error %v", err)
	}
}
