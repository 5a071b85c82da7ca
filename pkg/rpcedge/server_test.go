package rpcedge

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

// script is a Router whose every method does the same thing.
type script struct {
	verified bool
	do       func(ctx context.Context, call string) error
}

func (s script) UpdateHash(ctx context.Context, _ *v1alpha1.Rollout, canary, stable string, _ []v1alpha1.WeightDestination) error {
	return s.do(ctx, "UpdateHash "+canary+" "+stable)
}

func (s script) SetWeight(ctx context.Context, _ *v1alpha1.Rollout, _ int32, _ []v1alpha1.WeightDestination) error {
	return s.do(ctx, "SetWeight")
}

func (s script) VerifyWeight(ctx context.Context, _ *v1alpha1.Rollout, _ int32, _ []v1alpha1.WeightDestination) (bool, error) {
	return s.verified, s.do(ctx, "VerifyWeight")
}

func (s script) SetHeaderRoute(ctx context.Context, _ *v1alpha1.Rollout, _ *v1alpha1.SetHeaderRoute) error {
	return s.do(ctx, "SetHeaderRoute")
}

func (s script) SetMirrorRoute(ctx context.Context, _ *v1alpha1.Rollout, _ *v1alpha1.SetMirrorRoute) error {
	return s.do(ctx, "SetMirrorRoute")
}

func (s script) RemoveManagedRoutes(ctx context.Context, _ *v1alpha1.Rollout) error {
	return s.do(ctx, "RemoveManagedRoutes")
}

// syncBuffer is a log that a test may read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newServer(r Router) (*Server, *syncBuffer) {
	out := &syncBuffer{}
	return &Server{
		Name: "test", Router: r,
		Ready: func(context.Context) error { return nil },
		Log:   hclog.New(&hclog.LoggerOptions{Output: out, JSONFormat: true, Level: hclog.Info}),
	}, out
}

func rollout() *v1alpha1.Rollout {
	return &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
}

// every calls each RPC once and returns its error's text by the RPC's name.
func every(s *Server) map[string]string {
	ro := rollout()
	_, verify := s.VerifyWeight(ro, 10, nil)
	return map[string]string{
		"UpdateHash":          s.UpdateHash(ro, "c", "s", nil).ErrorString,
		"SetWeight":           s.SetWeight(ro, 10, nil).ErrorString,
		"VerifyWeight":        verify.ErrorString,
		"SetHeaderRoute":      s.SetHeaderRoute(ro, &v1alpha1.SetHeaderRoute{}).ErrorString,
		"SetMirrorRoute":      s.SetMirrorRoute(ro, &v1alpha1.SetMirrorRoute{}).ErrorString,
		"RemoveManagedRoutes": s.RemoveManagedRoutes(ro).ErrorString,
	}
}

func TestEveryCallReachesTheRouterAndReturnsItsError(t *testing.T) {
	s, _ := newServer(script{do: func(_ context.Context, call string) error { return errors.New("from " + call) }})
	for name, got := range every(s) {
		want := "from " + name
		if name == "UpdateHash" {
			want += " c s"
		}
		if got != want {
			t.Errorf("%s answered %q, want %q", name, got, want)
		}
	}
}

func TestAPanicEndsOneCallAndLeavesItsStackInTheLog(t *testing.T) {
	s, out := newServer(script{do: func(context.Context, string) error {
		var nobody *v1alpha1.Rollout
		_ = nobody.Name
		return nil
	}})
	for name, got := range every(s) {
		if !strings.HasPrefix(got, name+": internal error") {
			t.Errorf("%s answered %q", name, got)
		}
	}
	if !strings.Contains(out.String(), "server_test.go") || !strings.Contains(out.String(), `"rollout":"cart"`) {
		t.Errorf("the log lacks the stack or the Rollout:\n%s", out)
	}
}

func TestACallThatHangsEndsAtItsDeadlineAndNamesTheFlag(t *testing.T) {
	s, _ := newServer(script{do: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }})
	s.Timeout = 5 * time.Millisecond
	for name, got := range every(s) {
		if !strings.Contains(got, "not done within 5ms (--rpc-timeout)") {
			t.Errorf("%s answered %q", name, got)
		}
	}
}

func TestBeforeItIsReadyEachCallSaysWhyAndTriesAgain(t *testing.T) {
	reached := false
	s, _ := newServer(script{verified: true, do: func(context.Context, string) error { reached = true; return nil }})
	starts := 0
	s.Ready = func(context.Context) error {
		if starts++; starts <= 6 {
			return errors.New("no CRDs")
		}
		return nil
	}
	for name, got := range every(s) {
		if got != "no CRDs" {
			t.Errorf("%s answered %q", name, got)
		}
	}
	if reached {
		t.Error("the router was called before it was ready")
	}
	if verified, err := s.VerifyWeight(rollout(), 10, nil); verified != types.Verified || err.HasError() {
		t.Errorf("once ready: %v, %v", verified, err)
	}
}

func TestInitPluginSucceedsAtOnceEvenWhenTheClusterIsAway(t *testing.T) {
	s, out := newServer(script{})
	called := make(chan struct{})
	s.Ready = func(context.Context) error { close(called); return errors.New("connection refused") }
	if err := s.InitPlugin(); err.HasError() {
		t.Fatal(err)
	}
	<-called
	for deadline := time.Now().Add(5 * time.Second); !strings.Contains(out.String(), "connection refused"); {
		if time.Now().After(deadline) {
			t.Fatalf("the reason is not in the log:\n%s", out)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestVerifyWeightAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		verified bool
		err      error
		want     types.RpcVerified
		wantErr  string
	}{
		"verified":                                  {true, nil, types.Verified, ""},
		"not verified":                              {false, nil, types.NotVerified, ""},
		"not verified with the reason":              {false, errors.New("held"), types.NotVerified, "held"},
		"an error is never verified":                {true, errors.New("lost"), types.NotVerified, "lost"},
		"an error without a text still is an error": {true, errors.New(""), types.NotVerified, "unknown error"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(script{verified: c.verified, do: func(context.Context, string) error { return c.err }})
			got, err := s.VerifyWeight(rollout(), 10, nil)
			if got != c.want || err.ErrorString != c.wantErr {
				t.Errorf("got %v, %q; want %v, %q", got, err.ErrorString, c.want, c.wantErr)
			}
		})
	}
}

func TestCallsThatSucceedLogNothing(t *testing.T) {
	s, out := newServer(script{verified: true, do: func(context.Context, string) error { return nil }})
	every(s)
	if out.String() != "" {
		t.Errorf("logged:\n%s", out)
	}
}

func TestEveryCallIsNotedEvenThoseThatNameNoRollout(t *testing.T) {
	s, _ := newServer(script{do: func(context.Context, string) error { return nil }})
	calls := 0
	s.Called = func() { calls++ }
	every(s)
	s.Type()
	if calls != 7 {
		t.Errorf("%d of 7 calls were noted", calls)
	}
}

func TestEveryCallIsObservedWithItsNameAndHowItEnded(t *testing.T) {
	seen := map[string]error{}
	fails := errors.New("no")
	server := &Server{
		Name: "x", Ready: func(context.Context) error { return nil }, Log: hclog.NewNullLogger(),
		Router: script{do: func(_ context.Context, call string) error {
			if strings.HasPrefix(call, "UpdateHash") {
				return fails
			}
			return nil
		}},
		Observe: func(rpc string, took time.Duration, err error) {
			if took <= 0 {
				t.Errorf("%s took %s", rpc, took)
			}
			seen[rpc] = err
		},
	}
	ro := &v1alpha1.Rollout{}
	server.UpdateHash(ro, "a", "b", nil)
	server.SetWeight(ro, 1, nil)
	server.VerifyWeight(ro, 1, nil)
	server.SetHeaderRoute(ro, nil)
	server.SetMirrorRoute(ro, nil)
	server.RemoveManagedRoutes(ro)
	if len(seen) != 6 || !errors.Is(seen["UpdateHash"], fails) || seen["SetWeight"] != nil {
		t.Errorf("observed %v", seen)
	}
}
