package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// path is where Prometheus asks.
	path = "/metrics"
	// listenEvery is how often an address that another process has is tried
	// again: that is the plugin of the old leader, which ends within seconds.
	listenEvery = time.Second
	// maxScrapes is how many requests are answered at once; Prometheus needs one,
	// a pair of them two.
	maxScrapes = 4

	readTimeout     = 5 * time.Second
	writeTimeout    = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 2 * time.Second
	maxHeaderBytes  = 16 << 10
)

// CheckAddress returns an error that says what is wrong with an address for
// [Metrics.Serve]. It is HOST:PORT; an empty HOST means all interfaces, and PORT
// is a number from 1 to 65535.
func CheckAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("metrics address %q: %w: write HOST:PORT, such as :8081 or 127.0.0.1:8081", address, err)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		return fmt.Errorf("metrics address %q: port %q is not a number from 1 to 65535", address, port)
	}
	return nil
}

// Handler answers GET /metrics, and 404 to all else.
func (m *Metrics) Handler() http.Handler {
	mux := http.NewServeMux()
	if m != nil {
		mux.Handle("GET "+path, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
			Registry: m.registry, MaxRequestsInFlight: maxScrapes, Timeout: writeTimeout / 2,
		}))
	}
	return mux
}

// Serve answers at http://address/metrics until ctx ends, and then returns nil.
//
// An address that another process has is tried again every second, since for a
// moment the plugins of the old and of the new leader run side by side; Busy is
// told. Any other error comes back at once: the address is no address, not this
// machine's, or not allowed. The caller reports it and goes on; the plugin routes
// as well without metrics.
func (m *Metrics) Serve(ctx context.Context, address string) error {
	if m == nil {
		return nil
	}
	if err := CheckAddress(address); err != nil {
		return err
	}
	listener, err := m.listen(ctx, address)
	if err != nil || listener == nil {
		return err
	}
	return m.serve(ctx, listener)
}

// listen waits for a busy address. Its listener is nil when ctx ended first.
func (m *Metrics) listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	for told := false; ; told = true {
		listener, err := config.Listen(ctx, "tcp", address)
		switch {
		case err == nil:
			return listener, nil
		case ctx.Err() != nil:
			return nil, nil
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, fmt.Errorf("metrics address %q: %w", address, err)
		case !told && m.Busy != nil:
			m.Busy(fmt.Errorf("metrics address %q: %w: trying again every %s", address, err, listenEvery))
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(listenEvery):
		}
	}
}

// serve answers until ctx ends. A scrape that is under way may end.
func (m *Metrics) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: m.Handler(), ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	stopped := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ending) // what it cannot end in time, the end of the process does
	})
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics at %s: %w", listener.Addr(), err)
	}
	return nil
}
