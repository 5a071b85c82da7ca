package lab

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// echoProxy is a proxy in front of a server that sends back each line.
func echoProxy(t *testing.T) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); _, _ = io.Copy(conn, conn) }()
		}
	}()
	p, err := newProxy(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); listener.Close() })
	return p
}

// client is a connection through a proxy.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return client{Conn: conn, lines: bufio.NewReader(conn)}
}

// say sends a line and returns what comes back within the time given.
func (c client) say(line string, patience time.Duration) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.hear(patience)
}

func (c client) hear(patience time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	return c.lines.ReadString('\n')
}

func TestACutProxyResetsOldAndNewConnectionsUntilItIsRestored(t *testing.T) {
	t.Parallel()
	p := echoProxy(t)
	old := dial(t, p)
	if got, err := old.say("one", time.Second); got != "one\n" {
		t.Fatalf("through an open proxy: %q, %v", got, err)
	}
	p.Cut()
	// Without a word of the client: a watch only listens.
	if got, err := old.hear(time.Second); err == nil || isTimeout(err) {
		t.Errorf("old connection through a cut proxy: %q, %v, want a reset", got, err)
	}
	// The reset may come before the connection is made or after.
	conn, err := net.DialTimeout("tcp", p.Addr(), time.Second)
	if err == nil {
		defer conn.Close()
		_, err = client{Conn: conn, lines: bufio.NewReader(conn)}.say("three", time.Second)
	}
	if err == nil || isTimeout(err) {
		t.Errorf("new connection through a cut proxy: %v, want a reset", err)
	}
	p.Restore()
	if got, err := dial(t, p).say("four", time.Second); got != "four\n" {
		t.Errorf("through a restored proxy: %q, %v", got, err)
	}
}

func TestAHungProxyIsSilentAndDeliversWhenItIsRestored(t *testing.T) {
	t.Parallel()
	p := echoProxy(t)
	old := dial(t, p)
	if got, err := old.say("one", time.Second); got != "one\n" {
		t.Fatalf("through an open proxy: %q, %v", got, err)
	}
	p.Hang()
	fresh := dial(t, p)
	for name, c := range map[string]client{"old": old, "new": fresh} {
		if got, err := c.say("two", 300*time.Millisecond); !isTimeout(err) {
			t.Errorf("%s connection through a hung proxy: %q, %v, want silence", name, got, err)
		}
	}
	p.Restore()
	for name, c := range map[string]client{"old": old, "new": fresh} {
		if got, err := c.hear(time.Second); got != "two\n" {
			t.Errorf("%s connection after a hang: %q, %v", name, got, err)
		}
	}
}

func TestACutEndsAHang(t *testing.T) {
	t.Parallel()
	p := echoProxy(t)
	p.Hang()
	c := dial(t, p)
	if _, err := c.say("one", 100*time.Millisecond); !isTimeout(err) {
		t.Fatalf("through a hung proxy: %v, want silence", err)
	}
	p.Cut()
	if got, err := c.hear(time.Second); err == nil || isTimeout(err) {
		t.Errorf("connection after a hang and a cut: %q, %v, want a reset", got, err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
