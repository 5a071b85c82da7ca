package lab

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnAPIServerThatWasKilledComesBackWithWhatWasStored(t *testing.T) {
	t.Parallel()
	ctx := within(t, 4*time.Minute)
	l, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	before, err := l.Namespace(ctx, "kept")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the one that the lab began with, and one that was started again
		if err := l.KillAPIServer(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Namespace(ctx, "lost"); err == nil {
			t.Error("an API server that was killed took a write")
		}
		if err := l.KillAPIServer(); err == nil {
			t.Error("an API server that does not run was killed")
		}
		if err := l.StartAPIServer(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Client.CoreV1().Namespaces().Get(ctx, before, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	// The rest of the plane works on.
	i := slices.IndexFunc(l.processes.list, func(p *process) bool { return p.name == ControllerManager.binary })
	if err := l.awaitReplicaSets(ctx, l.processes.list[i]); err != nil {
		t.Error(err)
	}
}
