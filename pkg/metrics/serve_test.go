package metrics

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience bounds what must happen; a good run takes a hundredth of it.
const patience = 10 * time.Second

// serving runs Serve until the test ends and returns how it ended.
func serving(t *testing.T, m *Metrics, address string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Serve(ctx, address) }()
	t.Cleanup(cancel)
	return func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			t.Fatal("Serve does not end")
			return nil
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func TestAnAddressIsRefusedWithWhatIsWrongAboutIt(t *testing.T) {
	for address, want := range map[string]string{
		"":                 "write HOST:PORT",
		"8081":             "write HOST:PORT",
		"::1:8081":         "write HOST:PORT",
		":":                `port "" is not a number from 1 to 65535`,
		":0":               `port "0" is not a number from 1 to 65535`,
		":65536":           `port "65536" is not a number from 1 to 65535`,
		":http":            `port "http" is not a number from 1 to 65535`,
		"localhost:-1":     `port "-1" is not a number from 1 to 65535`,
		"http://host:8081": "write HOST:PORT",
		// An address for documentation, which is no machine's.
		"192.0.2.1:8081": "cannot assign requested address",
	} {
		// Serve that waits for such an address ends without an error.
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := New().Serve(ctx, address)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `"`+address+`"`) {
			t.Errorf("%q: %v, want %q and the address", address, err, want)
		}
	}
}

func TestGoodAddressesPass(t *testing.T) {
	for _, address := range []string{":8081", "127.0.0.1:1", "[::1]:65535", "localhost:8081", "0.0.0.0:8081"} {
		if err := CheckAddress(address); err != nil {
			t.Error(err)
		}
	}
}

// The plugin of the new leader starts while that of the old one still runs.
func TestASecondProcessWaitsForTheAddressAndThenHasIt(t *testing.T) {
	old := listen(t)
	address := old.Addr().String()
	m := New()
	m.Written("VirtualService")
	told := make(chan error, 10)
	m.Busy = func(err error) { told <- err }
	stop := serving(t, m, address)
	select {
	case err := <-told:
		if !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "in use") {
			t.Errorf("told %v", err)
		}
	case <-time.After(patience):
		t.Fatal("nobody is told that the address is taken")
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if text := eventuallyServed(t, address); !strings.Contains(text, `writes_total{kind="VirtualService"} 1`) {
		t.Errorf("served:\n%s", text)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
}

func eventuallyServed(t *testing.T, address string) string {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get("http://" + address + path); err == nil {
			answer.Body.Close()
			_, text := get(t, "http://"+address+path)
			return text
		}
	}
	t.Fatal("nothing is served")
	return ""
}

func TestWaitingForAnAddressEndsWithTheContext(t *testing.T) {
	taken := listen(t)
	m := New()
	told := make(chan error, 1)
	m.Busy = func(err error) { told <- err }
	stop := serving(t, m, taken.Addr().String())
	select {
	case <-told:
	case <-time.After(patience):
		t.Fatal("nobody is told that the address is taken")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestTheAddressIsFreeOnceServeHasEnded(t *testing.T) {
	listener := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New().serve(ctx, listener) }()
	eventuallyServed(t, listener.Addr().String())
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("serve does not end")
	}
	again, err := net.Listen("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestOnlyReadingTheMetricsIsAnswered(t *testing.T) {
	listener := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go New().serve(ctx, listener) //nolint:errcheck // it ends with the test
	url := "http://" + listener.Addr().String()
	eventuallyServed(t, listener.Addr().String())
	for _, other := range []string{"/", "/metrics/x", "/debug/pprof/"} {
		if code, _ := get(t, url+other); code != http.StatusNotFound {
			t.Errorf("%s: code %d", other, code)
		}
	}
	answer, err := http.Post(url+path, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: code %d", answer.StatusCode)
	}
}
