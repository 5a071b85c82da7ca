package cluster

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// given are credentials that a test changes; the content is the address.
type given struct {
	mu   sync.Mutex
	now  found
	fail error
}

func (g *given) read() (found, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now, g.fail
}

func (g *given) become(address string, fail error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now, g.fail = found{content: address, origin: "test"}, fail
}

// newAccess counts the meshes that it connects to.
func newAccess(t *testing.T, log *bytes.Buffer) (*access, *given, *[]*mesh) {
	t.Helper()
	g, made := &given{}, &[]*mesh{}
	logger := hclog.New(&hclog.LoggerOptions{Output: log})
	options := Options{SyncWait: 3 * time.Second}
	a := &access{credentials: g, patience: options.SyncWait, log: logger}
	a.connect = func(f found) (*mesh, error) {
		if f.content == "broken" {
			return nil, errors.New("it is no kubeconfig")
		}
		m, err := newMesh(&rest.Config{Host: f.content}, options, options.hooks(func(string, string, string) {}), hclog.NewNullLogger())
		if err == nil {
			m.content, m.host = f.content, f.content
			*made = append(*made, m)
		}
		return m, err
	}
	t.Cleanup(func() {
		for _, m := range *made {
			m.end()
		}
	})
	return a, g, made
}

// call makes calls at once and returns their errors.
func call(t *testing.T, a *access) error {
	t.Helper()
	const workers = 10
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	errs := make([]error, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() { errs[i] = a.ready(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

func TestManyCallsAtOnceMakeOneMeshForEachOfTheCredentials(t *testing.T) {
	east, west := newIstio(t), newIstio(t)
	var log bytes.Buffer
	a, g, made := newAccess(t, &log)
	for i, server := range []*istio{east, west} {
		g.become(server.URL, nil)
		if err := call(t, a); err != nil {
			t.Fatal(err)
		}
		if current := a.current.Load(); current.content != server.URL || current.life.Err() != nil {
			t.Errorf("in use is %s, %v, want %s", current.content, current.life.Err(), server.URL)
		}
		if len(*made) != i+1 || server.count("list v1/virtualservices") != 1 || server.count("list v1/destinationrules") != 1 {
			t.Errorf("%d meshes, requests %v", len(*made), server.requests())
		}
	}
	if (*made)[0].life.Err() == nil {
		t.Error("the mesh of the first credentials is still watched")
	}
}

func TestCredentialsThatDoNotWorkLeaveThoseBeforeInUse(t *testing.T) {
	east := newIstio(t)
	nowhere := httptest.NewServer(http.NotFoundHandler())
	defer nowhere.Close()
	var log bytes.Buffer
	a, g, made := newAccess(t, &log)
	g.become("broken", nil)
	if err := call(t, a); err == nil || !strings.Contains(err.Error(), "no kubeconfig") {
		t.Errorf("before any have worked: %v", err)
	}
	g.become(east.URL, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		address string
		fail    error
		want    string
	}{
		{"broken", nil, "it is no kubeconfig"},
		{"", errors.New("there are two"), "there are two"},
		{nowhere.URL, nil, "does not serve VirtualService"},
	} {
		g.become(step.address, step.fail)
		for range 2 {
			if err := call(t, a); err != nil {
				t.Errorf("%s: %v", step.want, err)
			}
		}
		if a.current.Load().content != east.URL {
			t.Errorf("%s: in use is %s", step.want, a.current.Load().content)
		}
		a.mu.Lock() // what runs in the background logs, too
		if n := strings.Count(log.String(), step.want); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", step.want, n, &log)
		}
		a.mu.Unlock()
	}
	g.become(east.URL, nil)
	if err := call(t, a); err != nil {
		t.Error(err)
	}
	if tried := (*made)[len(*made)-1]; tried.content != nowhere.URL || tried.life.Err() == nil {
		t.Errorf("credentials that were taken back are still tried: %s", tried.content)
	}
	g.become("", absentError{errors.New("nothing there")})
	if err := call(t, a); err == nil || !strings.Contains(err.Error(), "nothing there") {
		t.Errorf("without credentials: %v", err)
	}
}

func TestListeningEndsWithEitherEnd(t *testing.T) {
	t.Run("the taker stops while an event is on its way", func(t *testing.T) {
		source := watch.NewFake()
		heard := make(chan struct{}, 1)
		out := listen(source, func() { heard <- struct{}{} })
		source.Add(nil)
		<-heard
		out.Stop()
		for range out.ResultChan() { // until it is closed; a hang is the failure
		}
		if !source.IsStopped() {
			t.Error("the source goes on")
		}
	})
	t.Run("the source ends", func(t *testing.T) {
		source := watch.NewFakeWithChanSize(3, false)
		source.Add(nil)
		source.Error(nil)
		source.Stop()
		count := 0
		out := listen(source, func() { count++ })
		var types []watch.EventType
		for event := range out.ResultChan() {
			types = append(types, event.Type)
		}
		if count != 1 || len(types) != 2 || types[0] != watch.Added || types[1] != watch.Error {
			t.Errorf("heard %d times of %v", count, types)
		}
	})
}
