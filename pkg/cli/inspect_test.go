package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
		"give the name of one Rollout; in namespace shop (-n names another) plugin argoproj-labs/istio routes web":                                   {args: []string{}},
		"give the name of one Rollout; in namespace edge (-n names another) there is none that plugin":                                               {args: []string{"-n", "edge"}},
		"give the name of one Rollout; in namespace shop (-n names another) there is none that plugin other/istio":                                   {args: []string{"--plugin-name", "other/istio"}},
		"give the name of one Rollout (which there are in namespace shop cannot be told: missing right: list rollouts.argoproj.io in namespace shop": {args: []string{}, refuse: "rollouts"},
		"give the name of one Rollout: these are 2":               {args: []string{"web", "cart"}},
		"give the name of one Rollout; and -o xml: must be table": {args: []string{"-o", "xml"}},
		"Rollout shop/cart: there is no such":                     {args: []string{"cart"}},
		"Rollout edge/web: there is no such":                      {args: []string{"web", "-n", "edge"}},
		"does not use this plugin: spec.strategy.canary.trafficRouting.plugins has argoproj-labs/istio and not other/istio": {args: []string{"web", "--plugin-name", "other/istio"}},
		"missing right: get rollouts.argoproj.io in namespace shop":                                                         {args: []string{"web"}, refuse: "rollouts"},
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

// TestTheRestIsShownWithoutARight: the exit code still says that not all could be told.
func TestTheRestIsShownWithoutARight(t *testing.T) {
	for resource, want := range map[string]struct{ right, rest string }{
		"virtualservices":  {"missing right: get virtualservices.networking.istio.io in namespace shop", "2/20"},
		"destinationrules": {"missing right: get destinationrules.networking.istio.io in namespace shop", "stable 90  canary 10"},
		"replicasets":      {"missing right: list replicasets.apps in namespace shop", "5f6b8d9c77 (right)"},
	} {
		c := heldRollout(t)
		c.refuse[resource] = apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "web", errors.New("not yours"))
		got := running(t, c.connect, "inspect", "web", "--failure-threshold", "error")
		if got.code != exitFailed || !strings.Contains(got.err, "not all can be told of Rollout shop/web: "+want.right) || !strings.Contains(got.out, want.rest) || !strings.Contains(got.out, "SkipSteps") {
			t.Errorf("%s: %+v", resource, got)
		}
	}
}

func TestOfManyRolloutsSomeAreNamed(t *testing.T) {
	c := heldRollout(t)
	document := documentOf(t, "kind: Rollout")
	for i := range 13 {
		c.put(t, strings.Replace(document, "name: web\n", fmt.Sprintf("name: web-%02d\n", i), 1))
	}
	c.put(t, strings.NewReplacer("name: web\n", "name: aside\n", "plugins:", "elsewhere:").Replace(document))
	got := running(t, c.connect, "inspect")
	if want := "routes web, web-00, web-01, web-02, web-03, web-04, web-05, web-06, web-07, web-08 … and 4 more\n"; got.code != exitFailed || !strings.HasSuffix(got.err, want) {
		t.Errorf("%+v, want %s", got, want)
	}
}

func TestAWatchOutlivesErrorsAndTheRolloutItself(t *testing.T) {
	c := heldRollout(t)
	there := c.objects
	got := watching(t, c, func(look int, stop func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch look {
		case 2:
			c.refuse["rollouts"] = errors.New("the server is away")
		case 4:
			c.refuse["rollouts"] = nil
		case 5:
			c.objects = nil
		case 7:
			c.objects = there
		case 8:
			stop()
		}
	})
	if got.code != exitFine || strings.Count(got.err, "the server is away; it is tried again\n") != 1 || strings.Count(got.err, "there is no such Rollout") != 1 || strings.Count(got.out, "--- ") != 3 {
		t.Errorf("%+v", got)
	}
}
