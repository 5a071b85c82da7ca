package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/rollout/trafficrouting/plugin/rpc"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

// asPlugin makes the test binary be the plugin, so that the tests speak to a
// real child process without building another binary.
const asPlugin = "TEST_BINARY_IS_THE_PLUGIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func nothing(string) string { return "" }

func TestStartedByHandItSaysWhatItIsAndHowToRegisterIt(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(nil, nothing, &stdout, &stderr); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	if stdout.Len() > 0 {
		t.Errorf("on stdout: %s", &stdout)
	}
	for _, part := range []string{"plugin of Argo Rollouts", "argo-rollouts-config", "trafficRouterPlugins", "argoproj-labs/istio", "sha256"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("stderr lacks %q:\n%s", part, &stderr)
		}
	}
}

func TestHelpAndVersionAnswerOnStdout(t *testing.T) {
	for flag, parts := range map[string][]string{
		"--help":    {"--kube-qps", "--kube-burst", "--log-level", "--rpc-timeout", "--allow-cross-namespace", "--mesh-kubeconfig", "--mesh-secret-namespace", "--metrics-address", "--istiod-address", "--istiod-plaintext", "--istiod-token-file", "--istiod-root-cert", "--istiod-server-name", "--istiod-cluster", "--version"},
		"--version": {name, "go1."},
	} {
		var stdout, stderr bytes.Buffer
		if code := run([]string{flag}, nothing, &stdout, &stderr); code != 0 {
			t.Errorf("%s: exit code %d", flag, code)
		}
		for _, part := range parts {
			if !strings.Contains(stdout.String(), part) {
				t.Errorf("%s lacks %q:\n%s", flag, part, &stdout)
			}
		}
		if stderr.Len() > 0 {
			t.Errorf("%s on stderr: %s", flag, &stderr)
		}
	}
}

func TestWrongFlagsAreRefusedBeforeTheHandshake(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag: --kube-pqs":                                 {"--kube-pqs=5"},
		`"loud" is none of trace, debug, info`:                     {"--log-level=loud"},
		"--kube-qps 0 and --kube-burst 100: both must be":          {"--kube-qps=0"},
		"--rpc-timeout 1ms: must be at least 1s":                   {"--rpc-timeout=1ms"},
		"allow-cross-namespace":                                    {"--allow-cross-namespace=Not_A_Namespace"},
		"/a and --mesh-secret-namespace b: the cluster":            {"--mesh-kubeconfig=/a", "--mesh-secret-namespace=b"},
		`--metrics-address: metrics address "8080"`:                {"--metrics-address=8080"},
		`--istiod-address: "istiod" must be host:port`:             {"--istiod-address=istiod"},
		`--istiod-address: ":15012" must be host:port`:             {"--istiod-address=:15012"},
		"use 15012, or add --istiod-plaintext":                     {"--istiod-address=istiod:15010"},
		"--istiod-plaintext: of no use without --istiod-address":   {"--istiod-plaintext"},
		"--istiod-server-name: of no use without --istiod-address": {"--istiod-server-name=istiod"},
		`["edge"] is no flag`:                                      {"--metrics-address=:8082", "edge"},
		`--namespace "A_B": this is no name`:                       {"--namespace=A_B"},
		`--mesh-secret-namespace "a/b": this is no name`:           {"--mesh-secret-namespace=a/b"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(args, nothing, &stdout, &stderr); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
		if stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: want %q, got stdout %q, stderr %q", args, want, &stdout, &stderr)
		}
	}
}

// child starts the plugin as the controller does and returns its interface and
// what it writes to stderr.
func child(t *testing.T, kubeconfig string, args ...string) (rpc.TrafficRouterPlugin, *goplugin.Client, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--kubeconfig=" + kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), asPlugin+"=1")
	var stderr bytes.Buffer
	client := goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig: handshake,
		Plugins:         map[string]goplugin.Plugin{"RpcTrafficRouterPlugin": &rpc.RpcTrafficRouterPlugin{}},
		Cmd:             cmd,
		Stderr:          &stderr,
		Logger:          hclog.NewNullLogger(),
	})
	t.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	dispensed, err := protocol.Dispense("RpcTrafficRouterPlugin")
	if err != nil {
		t.Fatal(err)
	}
	return dispensed.(rpc.TrafficRouterPlugin), client, &stderr
}

// nowhere is a kubeconfig whose server refuses every connection.
func nowhere(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}],
"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithTheAPIServerAwayEveryCallAnswersAndTheProcessLives(t *testing.T) {
	p, client, stderr := child(t, nowhere(t), "--log-level=debug")
	ro := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
	if got := p.Type(); got != name {
		t.Errorf("type %q", got)
	}
	if err := p.InitPlugin(); err.HasError() {
		t.Errorf("InitPlugin: %v", err)
	}
	verified, verify := p.VerifyWeight(ro, 100, nil)
	if verified != types.NotVerified {
		t.Errorf("VerifyWeight answered %v", verified)
	}
	for call, err := range map[string]types.RpcError{
		"UpdateHash":          p.UpdateHash(ro, "c", "s", nil),
		"SetWeight":           p.SetWeight(ro, 10, nil),
		"VerifyWeight":        verify,
		"SetHeaderRoute":      p.SetHeaderRoute(ro, &v1alpha1.SetHeaderRoute{Name: "h"}),
		"SetMirrorRoute":      p.SetMirrorRoute(ro, &v1alpha1.SetMirrorRoute{Name: "m"}),
		"RemoveManagedRoutes": p.RemoveManagedRoutes(ro),
	} {
		if !strings.Contains(err.ErrorString, "connection refused") {
			t.Errorf("%s answered %q", call, err.ErrorString)
		}
	}
	if client.Exited() {
		t.Error("the process has ended")
	}
	client.Kill()
	assertLog(t, stderr)
}

func TestMetricsAreServedWhereTheFlagSays(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // free again, for the plugin
	p, _, _ := child(t, nowhere(t), "--metrics-address="+address)
	p.SetWeight(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}, 10, nil)
	var body []byte
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && len(body) == 0; time.Sleep(20 * time.Millisecond) {
		if answer, err := http.Get("http://" + address + "/metrics"); err == nil {
			body, _ = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
	}
	for _, want := range []string{`rollouts_istio_rpc_duration_seconds_count{result="error",rpc="SetWeight"} 1`, "process_resident_memory_bytes"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%s is not in:\n%s", want, body)
		}
	}
}

// assertLog checks that the controller can keep the level of each line, and that
// the start is told with the version.
func assertLog(t *testing.T, stderr *bytes.Buffer) {
	t.Helper()
	started := false
	for lines := bufio.NewScanner(bytes.NewReader(stderr.Bytes())); lines.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("not JSON: %s", lines.Text())
			continue
		}
		for _, key := range []string{"@level", "@message", "@timestamp", "@module"} {
			if line[key] == nil {
				t.Errorf("no %s in %s", key, lines.Text())
			}
		}
		version, _ := line["version"].(string)
		started = started || line["@message"] == "started" && strings.HasPrefix(version, name)
	}
	if !started {
		t.Errorf("the start is not logged:\n%s", stderr)
	}
}
