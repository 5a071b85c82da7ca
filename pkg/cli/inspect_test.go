package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// inspected is a cluster with the objects of testdata/inspect.yaml.
type inspected struct {
	namespace string
	mu        sync.Mutex
	objects   []unstructured.Unstructured
	refuse    map[string]error // by resource
	looks     int
	// looking is called before each look, with its number from 1.
	looking func(look int)
}

func heldRollout(t *testing.T) *inspected {
	t.Helper()
	c := &inspected{namespace: "shop", refuse: map[string]error{}}
	data, err := os.ReadFile("testdata/inspect.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "---\n") {
		c.put(t, document)
	}
	return c
}

// put stores a document in place of the one of its name.
func (c *inspected) put(t *testing.T, document string) {
	t.Helper()
	o := unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.objects {
		if c.objects[i].GetKind() == o.GetKind() && c.objects[i].GetName() == o.GetName() {
			c.objects[i] = o
			return
		}
	}
	c.objects = append(c.objects, o)
}

func (c *inspected) connect(p *Program) {
	p.now = func() time.Time { return time.Date(2026, 3, 4, 15, 16, 17, 0, time.UTC) }
	p.connect = func(t clusterFlags) (reader, error) {
		if t.Namespace != "" {
			c.namespace = t.Namespace
		}
		return c, nil
	}
}

func (c *inspected) Namespace() string { return c.namespace }

func (c *inspected) List(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	return c.Select(ctx, resource, namespace, "", "")
}

func (c *inspected) Select(_ context.Context, resource schema.GroupVersionResource, namespace, by, _ string) ([]unstructured.Unstructured, error) {
	selector, err := labels.Parse(by)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refuse[resource.Resource]; err != nil {
		return nil, err
	}
	var found []unstructured.Unstructured
	for _, o := range c.objects {
		if strings.ToLower(o.GetKind())+"s" == resource.Resource && o.GetNamespace() == namespace && selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o)
		}
	}
	return found, nil
}

func (c *inspected) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	if resource.Resource == "rollouts" && c.looking != nil {
		c.looks++
		c.looking(c.looks)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	found, err := c.Select(ctx, resource, namespace, "", "")
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i].GetName() == name {
			return found[i].DeepCopy(), nil
		}
	}
	return nil, apierrors.NewNotFound(resource.GroupResource(), name)
}

func TestInspectOutput(t *testing.T) {
	c := heldRollout(t)
	for golden, tc := range map[string]struct {
		change func(*Program)
		args   []string
		code   int
	}{
		"inspect.txt":        {nil, []string{"-n", "shop"}, exitFindings},
		"inspect.json":       {nil, []string{"-n", "shop", "-o", "json"}, exitFindings},
		"inspect.yaml":       {nil, []string{"-n", "shop", "-o", "yaml", "--events", "0", "--failure-threshold", "error"}, exitFine},
		"inspect-colour.txt": {coloured, []string{"--events", "1"}, exitFindings},
		"help-inspect.txt":   {asKubectlPlugin, []string{"--help"}, exitFine},
	} {
		t.Run(golden, func(t *testing.T) {
			got := running(t, func(p *Program) {
				c.connect(p)
				if tc.change != nil {
					tc.change(p)
				}
			}, append([]string{"inspect", "web"}, tc.args...)...)
			if got.code != tc.code || got.err != "" {
				t.Errorf("exit code %d, want %d; on stderr: %s", got.code, tc.code, got.err)
			}
			if golden == "inspect.yaml" {
				return // only the exit code: inspect.json has the same
			}
			assertGolden(t, golden, got.out)
		})
	}
}

func TestWhatCannotBeInspectedEndsWith2(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "virtualservices"}, "web", errors.New("not yours"))
	for want, tc := range map[string]struct {
		args   []string
		refuse string
	}{
		"accepts 1 arg(s), received 0":        {args: []string{}},
		"Rollout shop/cart: there is no such": {args: []string{"cart"}},
		"Rollout edge/web: there is no such":  {args: []string{"web", "-n", "edge"}},
		"does not use this plugin: spec.strategy.canary.trafficRouting.plugins has argoproj-labs/istio and not other/istio": {args: []string{"web", "--plugin-name", "other/istio"}},
		"missing right: get virtualservices.networking.istio.io in namespace shop":                                          {args: []string{"web"}, refuse: "virtualservices"},
		"missing right: get rollouts.argoproj.io in namespace shop":                                                         {args: []string{"web"}, refuse: "rollouts"},
		"missing right: list replicasets.apps in namespace shop":                                                            {args: []string{"web", "--watch"}, refuse: "replicasets"},
		"-o xml: must be table, json or yaml":                                                                               {args: []string{"web", "-o", "xml"}},
		"--failure-threshold: \"bad\" is none of":                                                                           {args: []string{"web", "--failure-threshold", "bad"}},
		"--interval 1ms: must be at least 100ms":                                                                            {args: []string{"web", "--watch", "--interval", "1ms"}},
		"--events -1: must be 0 or more":                                                                                    {args: []string{"web", "--events", "-1"}},
		"-n \"BAD/NS\" is no namespace":                                                                                     {args: []string{"web", "-n", "BAD/NS"}},
		"\"rollout/web\" is no name of a Rollout":                                                                           {args: []string{"rollout/web"}},
		"--plugin-name is empty":                                                                                            {args: []string{"web", "--plugin-name", ""}},
		"--allow-cross-namespace: \"A_B\" is no namespace":                                                                  {args: []string{"web", "--allow-cross-namespace", "A_B"}},
		"--istiod-plaintext: of no use without":                                                                             {args: []string{"web", "--istiod-plaintext"}},
		"port 15010 is istiod's without TLS":                                                                                {args: []string{"web", "--istiod-address", "localhost:15010"}},
	} {
		c := heldRollout(t)
		c.refuse[tc.refuse] = refused
		got := running(t, c.connect, append([]string{"inspect"}, tc.args...)...)
		if got.code != exitFailed || got.out != "" || !strings.Contains(got.err, want) {
			t.Errorf("%v: exit code %d, on stdout %q, on stderr %q, want %q", tc.args, got.code, got.out, got.err, want)
		}
	}
}

// watching runs a watch until looking cancels it.
func watching(t *testing.T, c *inspected, looking func(look int, stop func()), args ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.looking = func(look int) { looking(look, cancel) }
	var out, errs bytes.Buffer
	p := Program{Name: "inspect", Out: &out, Err: &errs, patience: time.Hour}
	c.connect(&p)
	code := Run(ctx, append([]string{"inspect", "web", "--watch", "--interval", "100ms"}, args...), p)
	return said{out.String(), errs.String(), code}
}

func TestAWatchPrintsWhatHasChangedAndEndsWell(t *testing.T) {
	for output, separator := range map[string]string{"table": "--- 2026-03-04 15:16:17Z\nRollout shop/web", "json": "{\n  \"namespace\": \"shop\"", "yaml": "at: \"2026-03-04T15:16:17Z\"\n"} {
		c := heldRollout(t)
		more := strings.NewReplacer("weight: 90", "weight: 75", "weight: 10}", "weight: 25}").Replace(documentOf(t, "kind: VirtualService"))
		got := watching(t, c, func(look int, stop func()) {
			switch look {
			case 3:
				c.put(t, more)
			case 5:
				stop()
			}
		}, "-o", output)
		if got.code != exitFine || got.err != "" || strings.Count(got.out, separator) != 2 {
			t.Errorf("%s: exit code %d, on stderr %q, printed\n%s", output, got.code, got.err, got.out)
		}
	}
}

// documentOf is the document of testdata/inspect.yaml that has this line.
func documentOf(t *testing.T, line string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/inspect.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(data), "---\n") {
		if strings.Contains(document, line+"\n") {
			return document
		}
	}
	t.Fatalf("no document has %q", line)
	return ""
}

func TestAWatchOutlivesAnErrorAndEndsWithTheRollout(t *testing.T) {
	c := heldRollout(t)
	got := watching(t, c, func(look int, _ func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch look {
		case 2:
			c.refuse["rollouts"] = errors.New("the server is away")
		case 4:
			c.refuse["rollouts"] = nil
		case 5:
			c.objects = nil
		}
	})
	if got.code != exitFailed || strings.Count(got.err, "the server is away; it is tried again\n") != 1 || !strings.Contains(got.err, "there is no such Rollout") || strings.Count(got.out, "--- ") != 2 {
		t.Errorf("%+v", got)
	}
}
