package istiod

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/types"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/mesh"
)

// shared is the lab of all tests, served its istiod, and secured the way to it with
// TLS.
var (
	shared  *lab.Lab
	served  *lab.Istiod
	secured secure
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	ctx := context.Background()
	var err error
	if shared, err = lab.Start(ctx, lab.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	files, err := os.MkdirTemp("", "istiod-tls")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(files)
	options := lab.IstiodOptions{}
	if secured, options.Args, err = newSecured(files); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if served, err = shared.StartIstiod(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// newNamespace returns a namespace of the test's own.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace, err := shared.Namespace(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shared.DeleteNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	return namespace
}

// apply writes objects as they are.
func apply(t *testing.T, namespace, manifests string) {
	t.Helper()
	if _, err := shared.Apply(t.Context(), namespace, []byte(manifests)); err != nil {
		t.Fatal(err)
	}
}

// newClient is a client that runs as long as the test.
func newClient(t *testing.T, options mesh.Options) *mesh.Client {
	t.Helper()
	client := mesh.New(options, hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: testWriter{t}}))
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		client.Run(ctx)
		close(over)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return client
}

// plain are the options for the shared istiod.
func plain() mesh.Options { return mesh.Options{Address: served.Address, Plaintext: true} }

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Logf("%s", line)
	return len(line), nil
}

// await fails the test when istiod does not come to serve what holds.
func await(t *testing.T, client *mesh.Client, rollout types.UID, what string, holds func(mesh.Served) bool) mesh.Served {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		now, err := client.Served(rollout)
		if err == nil && holds(now) {
			return now
		}
		select {
		case <-time.After(5 * time.Millisecond): // what is measured here takes 100
		case <-ctx.Done():
			t.Fatalf("%s: %v; last served was %+v", what, err, now)
		}
	}
}
