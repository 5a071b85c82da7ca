package release

import (
	"context"
	"debug/elf"
	"debug/macho"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

var (
	rollouts        = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	virtualServices = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
)

// application is a Rollout with all that it needs: %[1]s is its name, %[2]s the
// controller's instance id, %[3]s the plugin's name, %[4]d the revision.
const application = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s-stable}
spec: {ports: [{port: 80}], selector: {app: %[1]s}}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s-canary}
spec: {ports: [{port: 80}], selector: {app: %[1]s}}
---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata:
  name: %[1]s
  labels: {argo-rollouts.argoproj.io/controller-instance-id: "%[2]s"}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: app, image: "app:%[4]d"}]}
  strategy:
    canary:
      canaryService: %[1]s-canary
      stableService: %[1]s-stable
      trafficRouting: {plugins: {"%[3]s": {virtualService: {name: %[1]s}}}}
      steps: [{setWeight: 50}, {pause: {duration: 1s}}]
`

const routing = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %[1]s}
spec:
  hosts: [%[1]s]
  http:
  - route:
    - {destination: {host: %[1]s-stable}, weight: 100}
    - {destination: {host: %[1]s-canary}, weight: 0}
`

// roll brings out a revision of a Rollout that names the plugin. The Rollout has
// the last part of the plugin's name.
func (p *pod) roll(plugin string, revision int) {
	p.Helper()
	if revision == 1 {
		p.applyText(fmt.Sprintf(routing, path.Base(plugin)))
	}
	p.applyText(fmt.Sprintf(application, path.Base(plugin), p.namespace, plugin, revision))
}

// healthy waits until the controller is done with the Rollout as it stands.
func (p *pod) healthy(name string) {
	p.Helper()
	err := lab.Until(p.ctx, name+" to be healthy", func(ctx context.Context) (bool, error) {
		ro, err := shared.Dynamic.Resource(rollouts).Namespace(p.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		phase, _, _ := unstructured.NestedString(ro.Object, "status", "phase")
		seen, _, _ := unstructured.NestedString(ro.Object, "status", "observedGeneration")
		return phase == "Healthy" && seen == fmt.Sprint(ro.GetGeneration()), nil
	})
	if err != nil {
		p.Fatal(err)
	}
}

// weights follows the canary's weight until it is back at 0.
func (p *pod) weights(name string) <-chan []int64 {
	p.Helper()
	watch, err := shared.Dynamic.Resource(virtualServices).Namespace(p.namespace).
		Watch(p.ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(watch.Stop)
	result := make(chan []int64, 1)
	go func() {
		var seen []int64
		for event := range watch.ResultChan() {
			routes, _, _ := unstructured.NestedSlice(event.Object.(*unstructured.Unstructured).Object, "spec", "http")
			sides, _, _ := unstructured.NestedSlice(routes[0].(map[string]any), "route")
			weight, _, _ := unstructured.NestedInt64(sides[1].(map[string]any), "weight")
			if seen = slices.Compact(append(seen, weight)); len(seen) > 1 && weight == 0 {
				break
			}
		}
		result <- seen
	}()
	return result
}

// still checks that nothing has begun, and that nobody is told so by the Rollout.
func (c *controller) still(name string) {
	c.Helper()
	ro, err := shared.Dynamic.Resource(rollouts).Namespace(c.namespace).Get(c.ctx, name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	phase, _, _ := unstructured.NestedString(ro.Object, "status", "phase")
	message, _, _ := unstructured.NestedString(ro.Object, "status", "message")
	if replicas, _, _ := unstructured.NestedInt64(ro.Object, "status", "replicas"); phase != "Progressing" || message != "more replicas need to be updated" || replicas != 0 {
		c.Errorf("%s: phase %q, message %q, %d pods", name, phase, message, replicas)
	}
	for _, event := range c.events(name) {
		if strings.HasPrefix(event, "Warning") || strings.Contains(event, "plugin") {
			c.Errorf("%s: the docs say that there is no Event, but there is %s", name, event)
		}
	}
}

// unusable is a plugin that the controller fetches and cannot use.
type unusable struct {
	plugin plugin
	// as is the name by which the Rollout calls it, if not the registered one.
	as      string
	volumes volumes
	// before prepares the controller in place of a start with the plugin registered.
	before func(*pod, plugin) *controller
}

func TestARolloutStandsStillAndTheLogSaysWhy(t *testing.T) {
	t.Parallel()
	from := newSource(t)
	file := "file://" + keep(t, "plugin", from.binary)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	another := func(path string) plugin { return plugin{Name: "test/" + path, Location: "file://" + self} }
	older, newer := another("older"), another("newer")
	older.Args, newer.Args = []string{asProtocol + "0"}, []string{asProtocol + "2"}
	cases := map[string][]unusable{
		"The Rollout's name for the plugin is not the registered one.": {{plugin: plugin{Name: name, Location: file}, as: "argoproj-labs/istoi"}},
		"There is no ConfigMap argo-rollouts-config in the controller's namespace.": {{plugin: plugin{Name: name}, before: func(p *pod, _ plugin) *controller {
			return p.start(volumes{})
		}}},
		"The key has gone, as after an upgrade of Argo Rollouts: its manifest has the same ConfigMap, without data.": {{plugin: plugin{Name: name}, before: func(p *pod, _ plugin) *controller {
			p.apply(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "argo-rollouts-config"}})
			return p.start(volumes{})
		}}},
		"The controller has not been restarted since the ConfigMap was changed.": {{plugin: plugin{Name: name, Location: file}, before: func(p *pod, late plugin) *controller {
			c := p.start(volumes{})
			c.says(startedLine)
			p.register(late)
			return c
		}}},
		"The file is for another platform, or no program at all.": {
			{plugin: plugin{Name: "test/darwin", Location: "file://" + keep(t, "darwin", forDarwin())}},
			{plugin: plugin{Name: "test/processor", Location: "file://" + keep(t, "processor", forAnotherProcessor(from.binary))}},
			{plugin: plugin{Name: "test/page", Location: from.URL + atPage}},
		},
		"The plugin was built for another protocol of the controller.": {{plugin: older}, {plugin: newer}},
		"An item of args is no flag of the plugin.": {
			{plugin: plugin{Name: "test/typo", Location: file, Args: []string{"--kube-pqs=5"}}},
			{plugin: plugin{Name: "test/space", Location: file, Args: []string{"--namespace shop"}}},
		},
		"The plugin cannot begin with what it was given.":                               {{plugin: plugin{Name: "test/kubeconfig", Location: file, Args: []string{"--kubeconfig=/none"}}}},
		"The root file system is read-only and there is no volume for temporary files.": {{plugin: plugin{Name: name, Location: file}, volumes: volumes{noTmp: true}}},
		"The volume of plugin-bin is mounted with noexec.":                              {{plugin: plugin{Name: name, Location: file}, volumes: volumes{noExec: true}}},
	}
	rows := symptoms(t, standingStill)
	tried(t, rows, cases)
	for why, all := range cases {
		for i, tc := range all {
			t.Run(fmt.Sprint(why, " ", i), func(t *testing.T) {
				t.Parallel()
				tc.play(newPod(t), rows[why])
			})
		}
	}
}

// play starts the controller and waits for what it says about a Rollout.
func (u unusable) play(p *pod, lines []string) {
	p.Helper()
	var c *controller
	if u.before != nil {
		c = u.before(p, u.plugin)
	} else {
		p.register(u.plugin)
		c = p.start(u.volumes)
	}
	called := u.plugin.Name
	if u.as != "" {
		called = u.as
	}
	p.roll(called, 1)
	c.says("level=error", "failed to get traffic router plugin "+called+": unable to start plugin system: ", "rollout="+path.Base(called), lines[len(lines)-1])
	for _, line := range lines {
		c.says(line)
	}
	c.still(path.Base(called))
}

// forDarwin is the beginning of a program of macOS on arm64, by which a kernel
// judges it.
func forDarwin() []byte {
	header := make([]byte, 64)
	binary.LittleEndian.PutUint32(header, macho.Magic64)
	binary.LittleEndian.PutUint32(header[4:], uint32(macho.CpuArm64))
	return header
}

// forAnotherProcessor is the plugin with another processor in its header.
func forAnotherProcessor(program []byte) []byte {
	machine := elf.EM_AARCH64
	if runtime.GOARCH == "arm64" {
		machine = elf.EM_X86_64
	}
	other := slices.Clone(program)
	binary.LittleEndian.PutUint16(other[18:], uint16(machine)) // e_machine
	return other
}

func TestACanaryGoesThroughWithAPluginThatTheControllerFetched(t *testing.T) {
	t.Parallel()
	from := newSource(t)
	for how, tc := range map[string]struct {
		plugin  plugin
		fetched int
	}{
		"from a server, with its sum": {plugin{Name: name, Location: from.URL + atPlugin, Sha256: sumOf(from.binary)}, 1},
		// The sum is that of nothing: it is not looked at.
		"from a folder that is read-only, not executable": {plugin{Name: name, Location: "file://" + keep(t, "plugin", from.binary), Sha256: sumOf(nil)}, 0},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			before := from.count(atPlugin)
			p.register(tc.plugin)
			c := p.start(volumes{})
			p.roll(name, 1)
			p.healthy("istio")
			c.says("plugin.istio: started", "rollouts-plugin-trafficrouter-istio", runtime.GOOS+"/"+runtime.GOARCH)
			weights := p.weights("istio")
			p.roll(name, 2)
			p.healthy("istio")
			if got, want := <-weights, []int64{0, 50, 100, 0}; !slices.Equal(got, want) {
				t.Errorf("canary weights %v, want %v", got, want)
			}
			if fetched := from.count(atPlugin) - before; tc.fetched > 0 && fetched != tc.fetched {
				t.Errorf("fetched %d times", fetched)
			}
		})
	}
}
