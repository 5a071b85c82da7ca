package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/xds"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/mesh/backend"
)

// What a fleet has unless its options say otherwise.
const (
	DefaultClients = 4
	DefaultRate    = 96
	// DefaultDeadline is how long a request waits for its answer.
	DefaultDeadline = 10 * time.Second
	// DefaultLongest is when a fleet ends by itself.
	DefaultLongest = 5 * time.Minute
	// highestRate keeps a mistake from loading a machine.
	highestRate = 1000
)

// warming is the time between two tries of a client that has had no answer yet.
const warming = 100 * time.Millisecond

// Options say what a fleet sends.
type Options struct {
	// Istiod is the address of its XDS in plain text.
	Istiod string
	// Target is what the clients call, such as xds:///web.shop.svc.cluster.local:80.
	Target string
	// Namespace is the clients' own, and the one whose pods may answer.
	Namespace string
	// Clients, Rate (requests a second of all of them together), Deadline and
	// Longest: 0 means the default.
	Clients, Rate     int
	Deadline, Longest time.Duration
}

// Fleet sends requests from Start to Stop.
type Fleet struct {
	options Options
	conns   []*grpc.ClientConn

	cancel  context.CancelFunc
	sending sync.WaitGroup

	mu       sync.Mutex
	began    time.Time
	ended    time.Time
	requests []Request
	skipped  int
}

// New makes the clients of a fleet; nothing is sent yet.
func New(options Options) (*Fleet, error) {
	options.Clients = cmp.Or(options.Clients, DefaultClients)
	options.Rate = cmp.Or(options.Rate, DefaultRate)
	options.Deadline = cmp.Or(options.Deadline, DefaultDeadline)
	options.Longest = cmp.Or(options.Longest, DefaultLongest)
	if options.Rate < options.Clients || options.Rate > highestRate {
		return nil, fmt.Errorf("fleet: %d requests a second of %d clients: use at least one for each and at most %d", options.Rate, options.Clients, highestRate)
	}
	f := &Fleet{options: options, cancel: func() {}}
	for n := range options.Clients {
		conn, err := dial(options, n)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.conns = append(f.conns, conn)
	}
	return f, nil
}

// dial makes a client with a node id and a stream of its own.
func dial(options Options, n int) (*grpc.ClientConn, error) {
	bootstrap, err := json.Marshal(map[string]any{
		"xds_servers": []any{map[string]any{
			"server_uri": options.Istiod, "channel_creds": []any{map[string]any{"type": "insecure"}}, "server_features": []string{"xds_v3"},
		}},
		"node": map[string]any{
			"id":       fmt.Sprintf("sidecar~10.244.250.%d~client-%d.%s~%s.svc.cluster.local", n+1, n, options.Namespace, options.Namespace),
			"metadata": map[string]any{"GENERATOR": "grpc", "NAMESPACE": options.Namespace, "CLUSTER_ID": "Kubernetes"},
		},
	})
	if err != nil {
		return nil, err
	}
	resolver, err := xds.NewXDSResolverWithConfigForTesting(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("fleet: XDS of %s: %w", options.Istiod, err)
	}
	return grpc.NewClient(options.Target, grpc.WithResolvers(resolver), grpc.WithNoProxy(), grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// Warm waits until each client has had an answer: it knows the mesh by then. What
// it sends is not recorded.
func (f *Fleet) Warm(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for n, conn := range f.conns {
		group.Go(func() error {
			for {
				r := f.send(ctx, n, conn)
				if !r.Lost() {
					return nil
				}
				select {
				case <-ctx.Done():
					return fmt.Errorf("fleet: client %d has no answer from %s: %s: %w", n, f.options.Target, r.Failure, ctx.Err())
				case <-time.After(warming):
				}
			}
		})
	}
	return group.Wait()
}

// Start begins to send, once. It ends with Stop, with ctx, or by itself.
func (f *Fleet) Start(ctx context.Context) {
	ctx, f.cancel = context.WithTimeout(ctx, f.options.Longest)
	f.began = time.Now()
	every := time.Second * time.Duration(f.options.Clients) / time.Duration(f.options.Rate)
	for n, conn := range f.conns {
		// The clients take turns instead of sending all at the same moment.
		offset := every * time.Duration(n) / time.Duration(len(f.conns))
		f.sending.Go(func() { f.steadily(ctx, n, conn, offset, every) })
	}
}

// steadily sends one request with each tick. Ticks that a busy machine has
// missed are not made up for: a burst would be a load that nobody asked for.
func (f *Fleet) steadily(ctx context.Context, n int, conn *grpc.ClientConn, offset, every time.Duration) {
	time.Sleep(offset)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	// More cannot be under way at this rate, so this bound is never met.
	slots := make(chan struct{}, int(f.options.Deadline/every)+2)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case slots <- struct{}{}:
		default:
			f.skip()
			continue
		}
		f.sending.Go(func() {
			// Not the fleet's context: what has been sent gets its answer.
			f.keep(f.send(context.WithoutCancel(ctx), n, conn))
			<-slots
		})
	}
}

// send sends one request and waits for what becomes of it.
func (f *Fleet) send(ctx context.Context, n int, conn *grpc.ClientConn) Request {
	ctx, cancel := context.WithTimeout(ctx, f.options.Deadline)
	defer cancel()
	r := Request{At: time.Now(), Client: n}
	answer := &wrapperspb.StringValue{}
	err := conn.Invoke(ctx, backend.Method, &emptypb.Empty{}, answer)
	for ; raced(err) && ctx.Err() == nil; err = conn.Invoke(ctx, backend.Method, &emptypb.Empty{}, answer) {
		r.Raced = true
		time.Sleep(time.Millisecond)
	}
	r.Took = time.Since(r.At)
	if err != nil {
		r.Failure = fmt.Sprintf("%s: %s", status.Code(err), status.Convert(err).Message())
		return r
	}
	pod, ok := backend.ParsePod(answer.Value)
	if !ok || pod.Namespace != f.options.Namespace {
		r.Failure = fmt.Sprintf("a stranger answered: %q", answer.Value)
	}
	r.Pod = pod
	return r
}

// raced tells the failures after which a request is sent again. grpc-go hands a new
// route out a moment before its balancer knows the clusters of it, and where a
// cluster comes back that the route before had dropped, before the balancer has its
// configuration. Requests that come in between are refused by the client itself,
// have gone nowhere, and no proxy does that; nothing in what the routers write can
// avoid it. Where istiod really has no such cluster this goes on until the deadline,
// and the request is lost.
func raced(err error) bool {
	text := status.Convert(err).Message()
	return status.Code(err) == codes.Unavailable &&
		(strings.HasPrefix(text, "unknown cluster selected for RPC") || strings.Contains(text, "did not find the cluster"))
}

func (f *Fleet) keep(r Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
}

func (f *Fleet) skip() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skipped++
}

// Stop ends the sending, waits for what is under way, and returns everything. It
// may be called more than once.
func (f *Fleet) Stop() Record {
	f.cancel()
	f.sending.Wait()
	_ = f.close() // the answers are there
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended.IsZero() {
		f.ended = time.Now()
	}
	return newRecord(f.began, f.ended, f.requests, f.skipped)
}

func (f *Fleet) close() error {
	var errs []error
	for _, conn := range f.conns {
		errs = append(errs, conn.Close())
	}
	f.conns = nil
	return errors.Join(errs...)
}
