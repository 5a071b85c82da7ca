package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/lab"
)

// Port is what every pod listens on.
const Port = 8080

// probeEvery is the time between two looks at a pod's queue.
const probeEvery = 250 * time.Millisecond

// Backend plays all pods of a lab. Its methods may be called concurrently.
type Backend struct {
	lab      *lab.Lab
	listener net.Listener
	cancel   context.CancelFunc
	watching informers.SharedInformerFactory
	running  sync.WaitGroup

	mu       sync.Mutex
	pods     map[netip.Addr]*playing
	capacity map[string]float64 // by namespace
	failed   error              // the first write of a readiness that failed
}

type playing struct {
	uid types.UID
	*served
}

// Start listens and begins to play the pods that there are and those that come.
// It needs a network namespace in which the pods' addresses are local. End it
// with Stop.
func Start(ctx context.Context, l *lab.Lab) (*Backend, error) {
	listener, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", Port))
	if err != nil {
		return nil, fmt.Errorf("listen for the pods: %w", err)
	}
	life, cancel := context.WithCancel(context.Background())
	b := &Backend{lab: l, listener: listener, cancel: cancel, pods: map[netip.Addr]*playing{}, capacity: map[string]float64{}}
	if err := b.watch(ctx, life); err != nil {
		cancel()
		return nil, errors.Join(err, listener.Close())
	}
	b.running.Go(b.accept)
	b.running.Go(func() { b.probe(life) })
	return b, nil
}

// watch follows the pods; ctx bounds the first look.
func (b *Backend) watch(ctx, life context.Context) error {
	b.watching = informers.NewSharedInformerFactory(b.lab.Client, 0)
	informer := b.watching.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { b.see(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { b.see(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				b.forget(pod)
			}
		},
	})
	if err != nil {
		return err
	}
	b.watching.Start(life.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("backend: pods not read: %w", context.Cause(ctx))
	}
	return nil
}

// see begins to play a pod whose containers run. A pod that is ending is still
// there; see forget.
func (b *Backend) see(object *corev1.Pod) {
	address, err := netip.ParseAddr(object.Status.PodIP)
	if err != nil || object.Status.Phase != corev1.PodRunning {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.pods[address]
	if before != nil && before.uid == object.UID {
		return
	}
	if before != nil { // its address was given away
		b.running.Go(before.end)
	}
	at := net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, Port))
	b.pods[address] = &playing{object.UID, serve(identify(object), at, b.capacity[object.Namespace])}
}

// forget ends a pod that is gone.
func (b *Backend) forget(object *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for address, pod := range b.pods {
		if pod.uid == object.UID {
			delete(b.pods, address)
			b.running.Go(pod.end)
		}
	}
}

// accept hands each connection to the pod that is meant.
func (b *Backend) accept() {
	for {
		conn, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files; those that are there go on
			time.Sleep(probeEvery)
			continue
		}
		address := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		b.mu.Lock()
		pod := b.pods[address]
		b.mu.Unlock()
		if pod == nil {
			refuse(conn)
			continue
		}
		pod.conns.hand(conn)
	}
}

// SetCapacity limits each pod of a namespace, those to come included, to so many
// requests a second; 0 is no limit, which is what pods begin with.
func (b *Backend) SetCapacity(namespace string, perSecond float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.capacity[namespace] = perSecond
	for _, pod := range b.pods {
		if pod.Namespace == namespace {
			pod.queue.limit(perSecond)
		}
	}
}

// probe plays the kubelet for overloaded pods.
func (b *Backend) probe(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, pod := range b.all() {
				if unready, changed := pod.queue.probe(now); changed {
					err := b.lab.SetPodUnready(ctx, pod.Namespace, pod.Name, unready)
					if err != nil {
						pod.queue.undo() // the next probe tries again
					}
					b.note(ctx, err)
				}
			}
		}
	}
}

func (b *Backend) all() []*playing {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*playing, 0, len(b.pods))
	for _, pod := range b.pods {
		all = append(all, pod)
	}
	return all
}

// note keeps the first failure for Stop.
func (b *Backend) note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = err
	}
}

// Stop ends all pods at once and returns the first change of a readiness that
// could not be written, if there was one.
func (b *Backend) Stop() error {
	b.cancel()
	b.watching.Shutdown() // no pod begins or ends any more
	_ = b.listener.Close()
	for _, pod := range b.all() {
		pod.server.Stop()
	}
	b.running.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}
