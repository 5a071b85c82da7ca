package backend

import (
	"cmp"
	"context"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// Method is what every pod answers. It takes an Empty and returns a StringValue
// for [ParsePod].
const Method = "/" + serviceName + "/" + methodName

const (
	serviceName = "lab.Pod"
	methodName  = "Name"
	// farewell is how long requests that a pod took on may take after its end.
	farewell = 5 * time.Second
)

// Pod says who answered.
type Pod struct {
	Namespace, Name string
	// Hash is the pod-template hash of its revision.
	Hash string
}

func (p Pod) String() string { return p.Namespace + "/" + p.Name + "/" + p.Hash }

// ParsePod reads an answer of [Method]. ok is false when it is none.
func ParsePod(answer string) (p Pod, ok bool) {
	parts := strings.Split(answer, "/")
	if len(parts) != 3 {
		return Pod{}, false
	}
	return Pod{Namespace: parts[0], Name: parts[1], Hash: parts[2]}, true
}

func identify(object *corev1.Pod) Pod {
	return Pod{
		Namespace: object.Namespace, Name: object.Name,
		Hash: cmp.Or(object.Labels[v1alpha1.DefaultRolloutUniqueLabelKey], object.Labels["pod-template-hash"]),
	}
}

// served is one pod being played.
type served struct {
	Pod
	queue  queue
	server *grpc.Server
	conns  *connections
}

// serve starts to play a pod at an address.
func serve(pod Pod, address net.Addr, perSecond float64) *served {
	s := &served{Pod: pod, server: grpc.NewServer(), conns: newConnections(address)}
	s.queue.limit(perSecond)
	s.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName, HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: methodName, Handler: handle}},
	}, s)
	go func() { _ = s.server.Serve(s.conns) }() // ends with the server, and only then
	return s
}

func handle(pod any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	if err := decode(&emptypb.Empty{}); err != nil {
		return nil, err
	}
	return pod.(*served).answer(ctx)
}

// answer waits for the pod's capacity and says its name.
func (s *served) answer(ctx context.Context) (*wrapperspb.StringValue, error) {
	wait, ok := s.queue.admit(time.Now())
	if !ok {
		return nil, status.Errorf(codes.Unavailable, "pod %s is overloaded", s.Pod)
	}
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return wrapperspb.String(s.Pod.String()), nil
}

// end says goodbye to the clients, answers what has been taken on, and closes
// what is left of their connections.
func (s *served) end() {
	kill := time.AfterFunc(farewell, s.server.Stop)
	s.server.GracefulStop()
	kill.Stop()
}

// connections is a listener that is handed its connections.
type connections struct {
	address net.Addr
	queue   chan net.Conn
	closed  chan struct{}
}

func newConnections(address net.Addr) *connections {
	return &connections{address: address, queue: make(chan net.Conn), closed: make(chan struct{})}
}

// hand gives a connection to the pod, or refuses it when the pod has ended.
func (c *connections) hand(conn net.Conn) {
	select {
	case c.queue <- conn:
	case <-c.closed:
		refuse(conn)
	}
}

// refuse closes a connection the hard way, as the kernel of a pod does that
// nobody listens in.
func refuse(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// Accept, Close and Addr make it a net.Listener. Close is called once, by the
// server.
func (c *connections) Accept() (net.Conn, error) {
	select {
	case conn := <-c.queue:
		return conn, nil
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of net.Listener.
func (c *connections) Close() error {
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	return nil
}

// Addr is part of net.Listener.
func (c *connections) Addr() net.Addr { return c.address }
