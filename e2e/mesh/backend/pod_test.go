package backend

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// hosted is a pod behind a listener of this test.
func hosted(t *testing.T, pod Pod, perSecond float64) (*served, *grpc.ClientConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serve(pod, listener.Addr(), perSecond)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.conns.hand(conn)
		}
	}()
	client, err := grpc.NewClient("passthrough:///"+listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		listener.Close()
		s.server.Stop()
	})
	return s, client
}

func ask(t *testing.T, client *grpc.ClientConn) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	answer := &wrapperspb.StringValue{}
	err := client.Invoke(ctx, Method, &emptypb.Empty{}, answer)
	return answer.Value, err
}

func TestAPodSaysItsName(t *testing.T) {
	want := Pod{Namespace: "shop", Name: "cart-6d4f8-x", Hash: "6d4f8"}
	_, client := hosted(t, want, 0)
	answer, err := ask(t, client)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := ParsePod(answer); !ok || got != want {
		t.Errorf("answer %q is read as %+v (%t), want %+v", answer, got, ok, want)
	}
}

func TestWhatNoPodSaysIsNotReadAsOne(t *testing.T) {
	for _, answer := range []string{"", "cart", "shop/cart", "a/b/c/d"} {
		if pod, ok := ParsePod(answer); ok {
			t.Errorf("%q is read as %+v", answer, pod)
		}
	}
}

func TestAnOverloadedPodRefusesWithUnavailable(t *testing.T) {
	s, client := hosted(t, Pod{"shop", "cart", "h"}, 10)
	for range 40 { // as if so many had just come
		s.queue.admit(time.Now())
	}
	_, err := ask(t, client)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "overloaded") {
		t.Errorf("answer: %v", err)
	}
}

func TestAPodThatEndsAnswersWhatItHasTakenOnAndRefusesFromThenOn(t *testing.T) {
	s, client := hosted(t, Pod{"shop", "cart", "h"}, 2)
	if _, err := ask(t, client); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := ask(t, client) // waits for half a second
		answered <- err
	}()
	for { // until the pod has taken it on
		s.queue.mu.Lock()
		waiting := s.queue.wait(time.Now())
		s.queue.mu.Unlock()
		if waiting > 500*time.Millisecond {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s.end()
	if err := <-answered; err != nil {
		t.Errorf("a request taken on before the end: %v", err)
	}
	if _, err := ask(t, client); status.Code(err) != codes.Unavailable {
		t.Errorf("after the end: %v", err)
	}
	if state := client.GetState(); state == connectivity.Ready {
		t.Error("the connection is still open")
	}
}
