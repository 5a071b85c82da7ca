package lab

import (
	"fmt"
	"net"
	"sync"
)

// Proxy is a way to the API server that can be cut and restored, to play
// outages for those whose kubeconfig leads through it: a controller with its
// plugin, or the plugin alone; see ControllerOptions. It passes bytes on, so
// certificates and identities are the API server's and the client's own. Its
// methods may be called concurrently.
type Proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	moved *sync.Cond // tells connections that wait that the state changed
	state proxyState
	conns map[net.Conn]struct{}
}

type proxyState int

const (
	proxyOpen proxyState = iota
	proxyHung
	proxyCut
	proxyClosed
)

// Proxy starts a proxy in front of the API server. It ends with the lab.
func (l *Lab) Proxy() (*Proxy, error) {
	p, err := newProxy(l.apiAddress())
	if err == nil {
		l.onStop(p.Close)
	}
	return p, err
}

func newProxy(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{}}
	p.moved = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

// Addr is the host and port that the proxy listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut makes the API server unreachable: connections are reset, those there are
// and those that come.
func (p *Proxy) Cut() { p.become(proxyCut) }

// Hang makes the API server silent: connections are taken and kept, and no
// byte passes in either direction until Restore, which then delivers what
// waited, or until Cut.
func (p *Proxy) Hang() { p.become(proxyHung) }

// Restore ends a Cut or Hang.
func (p *Proxy) Restore() { p.become(proxyOpen) }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.become(proxyClosed)
	p.listener.Close()
}

func (p *Proxy) become(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == proxyClosed {
		return
	}
	p.state = s
	if s >= proxyCut {
		for conn := range p.conns {
			conn.Close()
		}
	}
	p.moved.Broadcast()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close resets the connection, as an outage does
		}
		go p.serve(conn)
	}
}

func (p *Proxy) serve(client net.Conn) {
	if !p.track(client) {
		return
	}
	defer p.forget(client)
	if !p.open() {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.track(server) {
		return
	}
	defer p.forget(server)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.pass(server, client)
	}()
	p.pass(client, server)
	<-ended
}

// pass copies one direction until either side ends, and then ends both.
func (p *Proxy) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.open() {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// open waits while the proxy hangs, and reports whether bytes may pass then.
func (p *Proxy) open() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.state == proxyHung {
		p.moved.Wait()
	}
	return p.state == proxyOpen
}

// track takes note of a connection, or closes it when there is an outage.
func (p *Proxy) track(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state >= proxyCut {
		conn.Close()
		return false
	}
	p.conns[conn] = struct{}{}
	return true
}

func (p *Proxy) forget(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}
