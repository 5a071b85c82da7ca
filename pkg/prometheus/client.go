package prometheus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
)

const (
	// defaultTimeout bounds all queries of one question together.
	defaultTimeout = 10 * time.Second
	// defaultConcurrency is how many questions are asked at a time.
	defaultConcurrency = 4
	// maxAnswer bounds one answer, in bytes: ours are one number long.
	maxAnswer = 1 << 20
	// maxFile bounds the token and the certificates.
	maxFile = 1 << 20
	// maxReason bounds what an answer's error adds to a message.
	maxReason = 300
)

// Options are the operator's choices. The zero value asks whatever address a question
// names.
type Options struct {
	// Address is the operator's own server, in the form of config.ParsePrometheusAddress;
	// the token and the certificates are for it alone.
	Address string
	// TokenFile holds a bearer token, CAFile PEM certificates to trust beside none of the
	// system's; "" is no token, and the system's certificates. Both are read for each
	// question, so that they may be renewed.
	TokenFile, CAFile string
	// Timeout bounds one question, 0 is 10 s. Concurrency is how many are asked at a
	// time, 0 is 4.
	Timeout     time.Duration
	Concurrency int
}

// Client asks. It sends nothing and reads no file until it is asked to; it is safe for
// concurrent use.
type Client struct {
	options Options
	turns   chan struct{}
	plain   *http.Transport

	mu      sync.Mutex
	ca      string
	trusted *http.Transport // trusts ca
}

// New returns a Client.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	return &Client{options: o, turns: make(chan struct{}, o.Concurrency), plain: transport(nil)}
}

// transport is for one set of certificates, nil for the system's.
func transport(pool *x509.CertPool) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: 2, IdleConnTimeout: 2 * time.Minute,
		ForceAttemptHTTP2: true,
	}
}

// Numbers answers one question. It waits for a turn for as long as ctx allows, and then
// for Timeout at most. The error is a *gate.QueryError where the configuration is at
// fault; any other says that the server cannot be asked, and asking later may help.
func (c *Client) Numbers(ctx context.Context, q gate.Question) (gate.Numbers, error) {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return gate.Numbers{}, fmt.Errorf("%d other questions are under way: %w", cap(c.turns), ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	server, err := c.server(q.Provider.Address)
	if err != nil {
		return gate.Numbers{}, err
	}
	numbers, err := ask(ctx, server, q)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%s has not answered within %s: %w", q.Provider.Address, c.options.Timeout, err)
	}
	return numbers, err
}

// ask sends the queries of a question one after the other.
func ask(ctx context.Context, server v1.API, q gate.Question) (gate.Numbers, error) {
	numbers := gate.Numbers{Known: true}
	for _, s := range sidesOf(q) {
		into := &numbers.Canary
		if s.name != "canary" {
			into = &numbers.Stable
		}
		for _, x := range queriesOf(q) {
			value, err := one(ctx, server, q, x.name, s.name, x.text(q, s))
			if err != nil {
				return gate.Numbers{}, err
			}
			*x.into(into) = value
		}
	}
	if text := presence(q); text != "" {
		known, err := one(ctx, server, q, "requests", "", text)
		if err != nil {
			return gate.Numbers{}, err
		}
		numbers.Known = known > 0
	}
	return numbers, nil
}

// one asks for one number.
func one(ctx context.Context, server v1.API, q gate.Question, name, side, text string) (float64, error) {
	value, warnings, err := server.Query(ctx, text, q.To)
	faulty := func(err error) error { return &gate.QueryError{Query: name, Side: side, Err: err} }
	var answered *v1.Error
	switch {
	case errors.As(err, &answered) && (answered.Type == v1.ErrBadData || answered.Type == v1.ErrExec):
		return 0, faulty(errors.New(short(answered.Msg)))
	case err != nil:
		return 0, fmt.Errorf("%s: %s: %w", q.Provider.Address, name, shortened{err})
	case len(warnings) > 0:
		// A part of the data is missing: of several stores behind one API, say.
		return 0, fmt.Errorf("%s: %s: the answer is not complete: %s", q.Provider.Address, name, short(strings.Join(warnings, "; ")))
	}
	number, err := numberOf(value)
	if err != nil {
		return 0, faulty(err)
	}
	return number, nil
}

// numberOf reads the one number of an answer. Nothing is 0: no series, no requests.
func numberOf(value model.Value) (float64, error) {
	var number float64
	switch v := value.(type) {
	case model.Vector:
		switch {
		case len(v) == 0:
			return 0, nil
		case len(v) > 1:
			return 0, fmt.Errorf("gives %d numbers, such as %s, where one is needed: put sum(…) around it", len(v), short(v[0].Metric.String()))
		case v[0].Histogram != nil:
			return 0, errors.New("gives a histogram where a number is needed: use histogram_count(…) or histogram_sum(…)")
		}
		number = float64(v[0].Value)
	case *model.Scalar:
		number = float64(v.Value)
	case nil:
		return 0, errors.New("gives nothing at all, not even an empty list")
	default:
		return 0, fmt.Errorf("gives a %s where one number is needed", value.Type())
	}
	if math.IsNaN(number) || math.IsInf(number, 0) || number < 0 {
		return 0, fmt.Errorf("gives %v, which is no amount", number)
	}
	return number, nil
}

// server is a client of one address.
func (c *Client) server(address string) (v1.API, error) {
	var way http.RoundTripper = c.plain
	if address == c.options.Address {
		var err error
		if way, err = c.own(); err != nil {
			return nil, err
		}
	}
	client, err := api.NewClient(api.Config{Address: address, Client: &http.Client{
		Transport:     bounded{way},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return v1.NewAPI(client), nil
}

// own is the way to the operator's server.
func (c *Client) own() (http.RoundTripper, error) {
	way, err := c.trusting()
	if err != nil || c.options.TokenFile == "" {
		return way, err
	}
	token, err := read(c.options.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("--prometheus-token-file: %w", err)
	}
	if token = strings.TrimSpace(token); token == "" || strings.ContainsAny(token, "\r\n") {
		return nil, fmt.Errorf("--prometheus-token-file: %s must hold one token on one line", c.options.TokenFile)
	}
	return authorized{way, token}, nil
}

// trusting trusts the certificates that are in the file by now.
func (c *Client) trusting() (http.RoundTripper, error) {
	if c.options.CAFile == "" {
		return c.plain, nil
	}
	ca, err := read(c.options.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--prometheus-ca-file: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trusted != nil && c.ca == ca {
		return c.trusted, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		return nil, fmt.Errorf("--prometheus-ca-file: %s holds no certificate in PEM", c.options.CAFile)
	}
	if c.trusted != nil {
		c.trusted.CloseIdleConnections()
	}
	c.ca, c.trusted = ca, transport(pool)
	return c.trusted, nil
}

// read reads a small file.
func read(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxFile)
	}
	return string(content), err
}

// authorized adds the token.
type authorized struct {
	next  http.RoundTripper
	token string
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return a.next.RoundTrip(r)
}

// bounded bounds the size of an answer.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limited{answer.Body, maxAnswer}
	return answer, nil
}

// limited is a body that ends with an error where it is too long.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// short bounds what others wrote.
func short(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// shortened is an error with a bounded text.
type shortened struct{ error }

func (s shortened) Error() string { return short(s.error.Error()) }

// Unwrap returns the whole one.
func (s shortened) Unwrap() error { return s.error }
