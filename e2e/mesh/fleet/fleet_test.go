package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestARateThatIsTooLowOrTooHighIsRefused(t *testing.T) {
	for _, rate := range []int{1, 3, highestRate + 1} {
		if _, err := New(Options{Istiod: "127.0.0.1:1", Target: "xds:///x:80", Rate: rate}); err == nil || !strings.Contains(err.Error(), "at most") {
			t.Errorf("rate %d: %v", rate, err)
		}
	}
}

func TestOnlyTheClientsOwnRaceIsSentAgain(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{status.Error(codes.Unavailable, `unknown cluster selected for RPC: "cluster:x"`), true},
		{status.Error(codes.Unavailable, `failed to push new configuration: did not find the cluster "x" in XDSConfig`), true},
		{status.Error(codes.Unavailable, "weighted-target: no targets to pick from"), false},
		{status.Error(codes.Internal, "unknown cluster selected for RPC"), false},
		{errors.New("unknown cluster selected for RPC"), false},
		{nil, false},
	} {
		if got := raced(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}

func TestAFleetWithoutAMeshLosesWhatItSendsAndStops(t *testing.T) {
	f, err := New(Options{Istiod: "127.0.0.1:1", Target: "xds:///nowhere.test.svc.cluster.local:80", Rate: 40, Deadline: 200 * time.Millisecond, Longest: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f.Start(t.Context())
	f.sending.Wait() // it ends by itself
	r := f.Stop()
	if len(r.Requests) == 0 || len(r.Lost()) != len(r.Requests) {
		t.Errorf("%d of %d lost", len(r.Lost()), len(r.Requests))
	}
	if most := 40 + DefaultClients; len(r.Requests) > most {
		t.Errorf("%d requests in a second at a rate of 40", len(r.Requests))
	}
	if again := f.Stop(); len(again.Requests) != len(r.Requests) || !again.Ended.Equal(r.Ended) {
		t.Error("a second Stop returns something else")
	}
}
