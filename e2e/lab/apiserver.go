package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// KillAPIServer ends the API server at once, as the loss of its node does; etcd
// and what it has stored stay. StartAPIServer brings it back. Until then every
// request in the lab fails, those of a test included. To play an outage for one
// client alone, see [Proxy].
//
// The kubelets end with it: kwok keeps the addresses of pods in its memory, and after an
// outage it was seen to give the same one to two pods.
func (l *Lab) KillAPIServer() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kwok != nil {
		l.kwok.kill()
		<-l.kwok.done
	}
	if l.apiServer != nil {
		if l.apiServer.ended() {
			return errors.New("the API server does not run")
		}
		l.apiServer.kill()
		<-l.apiServer.done
		return nil
	}
	pid, _, err := started(l.dir, APIServer.binary)
	if err != nil {
		return fmt.Errorf("the API server: %w", err)
	}
	if syscall.Kill(pid, 0) != nil {
		return errors.New("the API server does not run")
	}
	killGroup(pid)
	// Its id may be another process's by the time the lab ends.
	defer os.Remove(filepath.Join(l.processes.notes, strconv.Itoa(pid)))
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// StartAPIServer starts the API server after a KillAPIServer, at the address that
// it had and with the same certificates, and waits until it is ready.
func (l *Lab) StartAPIServer(ctx context.Context) error {
	path, err := APIServer.Path()
	if err != nil {
		return err
	}
	_, args, err := started(l.dir, APIServer.binary)
	if err != nil {
		return fmt.Errorf("the API server: %w", err)
	}
	proc, err := l.processes.start(program{name: APIServer.binary, path: path, args: args, dir: l.dir})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.apiServer = proc
	l.mu.Unlock()
	err = proc.await(ctx, func(ctx context.Context) (bool, error) {
		_, err := l.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("API server: %w\n%s", err, proc.tail(20))
	}
	_, err = l.runKwok()
	return err
}
