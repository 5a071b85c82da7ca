package lab

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"
)

// shared is the lab of all tests that do not need one of their own.
var shared *Lab

func TestMain(m *testing.M) {
	if os.Getenv(stubVariable) != "" {
		playStub(os.Args[1:])
		return
	}
	if dir := os.Getenv(victimVariable); dir != "" {
		os.Exit(playVictim(dir))
	}
	os.Exit(runTests(m))
}

// runTests is apart from TestMain so that its deferred Stop runs before the exit.
func runTests(m *testing.M) int {
	var err error
	shared, err = Start(context.Background(), Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the lab:", err)
		}
	}()
	fmt.Printf("lab up after %.1f s\n", shared.StartTook.Seconds())
	return m.Run()
}

// within bounds a test's waiting.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// scenario gives a test a namespace and prints the logs when it fails.
func scenario(t *testing.T, ctx context.Context) string {
	t.Helper()
	namespace, err := shared.Namespace(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(shared.Tail(10))
		}
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := shared.DeleteNamespace(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	return namespace
}
