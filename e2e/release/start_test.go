package release

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const name = "argoproj-labs/istio"

// faulty is a configuration with which the controller ends.
type faulty struct {
	plugin  plugin
	list    string // in place of plugin
	volumes volumes
}

func TestTheControllerEndsAndSaysWhy(t *testing.T) {
	t.Parallel()
	from := newSource(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	sum := sumOf(from.binary)
	cases := map[string][]faulty{
		"The file is not the one that the sum is of.": {
			{plugin: plugin{Name: name, Location: from.URL + atPlugin, Sha256: sumOf(nil)}},
			{plugin: plugin{Name: name, Location: from.URL + atPage, Sha256: sum}},
		},
		"The sum has capital letters or is not the whole of it.": {
			{plugin: plugin{Name: name, Location: from.URL + atPlugin, Sha256: strings.ToUpper(sum)}},
			// Of a small file: the controller prints all of it in hex.
			{plugin: plugin{Name: name, Location: from.URL + atPage, Sha256: sum[:40]}},
		},
		"The server has no such file.":                            {{plugin: plugin{Name: name, Location: from.URL + "/1.2.3/plugin", Sha256: sum}}},
		"The server cannot be reached from the pod.":              {{plugin: plugin{Name: name, Location: closed.URL + atPlugin, Sha256: sum}}},
		"The controller does not trust the server's certificate.": {{plugin: plugin{Name: name, Location: secure.URL + atPlugin, Sha256: sum}}},
		"The connection broke in the middle of the file.":         {{plugin: plugin{Name: name, Location: from.URL + atCut, Sha256: sum}}},
		"The root file system is read-only and there is no volume for plugin-bin.": {
			{plugin: plugin{Name: name, Location: from.URL + atPlugin, Sha256: sum}, volumes: volumes{noPluginBin: true}},
			{plugin: plugin{Name: name, Location: "file://" + keep(t, "plugin", from.binary)}, volumes: volumes{noPluginBin: true}},
		},
		"There is no such file in the pod.": {{plugin: plugin{Name: name, Location: "file:///istio-plugin/none"}}},
		"The location is no URL.":           {{plugin: plugin{Name: name, Location: "plugins/istio"}}},
		"The location has another scheme.":  {{plugin: plugin{Name: name, Location: "oci://registry/plugin:v1"}}},
		"The name has no slash, or two.":    {{plugin: plugin{Name: "istio", Location: from.URL + atPlugin}}, {plugin: plugin{Name: "a/b/c", Location: from.URL + atPlugin}}},
		"What stands under trafficRouterPlugins is no list, or the args of an entry are none.": {
			{list: "name: " + name}, {list: "- {name: " + name + ", location: 'file:///plugin', args: --namespace=shop}"},
		},
	}
	rows := symptoms(t, notStarting)
	tried(t, rows, cases)
	for why, all := range cases {
		for i, tc := range all {
			t.Run(fmt.Sprint(why, " ", i), func(t *testing.T) {
				t.Parallel()
				tc.end(t, rows[why])
			})
		}
	}
}

// end starts the controller and waits for its end.
func (f faulty) end(t *testing.T, lines []string) {
	t.Helper()
	p := newPod(t)
	if f.list != "" {
		p.configure(f.list)
	} else {
		p.register(f.plugin)
	}
	c := p.start(f.volumes)
	if code := c.exitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	fatal := lastLine(c.text())
	if !strings.Contains(fatal, "level=fatal") || !pattern(lines[0]).MatchString(fatal) {
		t.Errorf("the last line has no level=fatal and %q:\n%s", lines[0], fatal)
	}
	for _, line := range lines[1:] {
		if !pattern(line).MatchString(c.text()) {
			t.Errorf("the log lacks %q", line)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// downloading is quoted in docs/troubleshooting.md, too.
const downloading = "Downloading plugin … from: …"

func TestTheControllerWaitsForAServerForEver(t *testing.T) {
	t.Parallel()
	from := newSource(t)
	p := newPod(t)
	health := freeAddress(t)
	p.args = []string{"--healthzPort=" + health[strings.LastIndex(health, ":")+1:]}
	p.register(plugin{Name: name, Location: from.URL + atHang, Sha256: sumOf(from.binary)})
	c := p.start(volumes{})
	select {
	case <-from.hanging:
	case <-p.ctx.Done():
		t.Fatal("the controller has not asked for the file")
	}
	c.says(downloading)
	if last := lastLine(c.text()); !pattern(downloading).MatchString(last) {
		t.Errorf("the last line is %s", last)
	}
	if answer, err := http.Get("http://" + health + "/healthz"); err == nil {
		answer.Body.Close()
		t.Errorf("/healthz answers %s", answer.Status)
	}
	// It ends when the server does, and not before.
	if c.ended() {
		t.Error("the controller has given up")
	}
	close(from.free)
	if code := c.exitCode(); code != 1 || !strings.Contains(lastLine(c.text()), "failed to download file from") {
		t.Errorf("exit code %d, the last line is %s", code, lastLine(c.text()))
	}
}

// freeAddress is one where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
