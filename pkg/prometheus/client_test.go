package prometheus_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/config"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/gate"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/prometheus"
)

// server answers queries as a Prometheus does.
type server struct {
	*httptest.Server
	mu sync.Mutex
	// answer is what a query gets; a query that it does not know has no series.
	answer func(query string) (status int, body string)
	asked  []string
	times  []string
	tokens []string
}

const empty = `{"status":"success","data":{"resultType":"vector","result":[]}}`

// number is an answer of one series.
func number(value string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1796029200,"` + value + `"]}]}}`
}

func newServer(t *testing.T, answer func(query string) (int, string)) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	s.mu.Lock()
	s.asked = append(s.asked, query)
	s.times = append(s.times, r.FormValue("time"))
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	s.mu.Unlock()
	if r.URL.Path != "/api/v1/query" {
		http.NotFound(w, r)
		return
	}
	status, body := s.answer(query)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// question is about the subsets' pods.
func question(address string) gate.Question {
	to := time.Date(2026, 11, 30, 9, 1, 0, 0, time.UTC)
	return gate.Question{
		Rollout: "uid", Namespace: "shop", Latency: true,
		Stretch:  gate.Stretch{Canary: "new", Stable: "old", Weight: 25, Max: 100},
		Provider: config.Prometheus{Address: address, Reporter: config.Destination, HashLabel: config.DefaultHashLabel},
		From:     to.Add(-time.Minute), To: to,
	}
}

func TestNumbersOfSubsets(t *testing.T) {
	s := newServer(t, func(query string) (int, string) {
		switch {
		case strings.HasPrefix(query, "count("):
			return 200, number("7")
		case strings.Contains(query, "_sum"):
			return 200, number("6000.5")
		case strings.Contains(query, "_count"):
			return 200, number("199")
		case strings.Contains(query, "5..") && strings.Contains(query, `"old"`):
			return 200, empty
		case strings.Contains(query, "5.."):
			return 200, `{"status":"success","data":{"resultType":"scalar","result":[1796029200,"3"]}}`
		}
		return 200, number("200")
	})
	got, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), question(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	want := gate.Numbers{
		Canary: gate.Side{Requests: 200, Errors: 3, LatencySum: 6000.5, LatencyCount: 199},
		Stable: gate.Side{Requests: 200, Errors: 0, LatencySum: 6000.5, LatencyCount: 199},
		Known:  true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	if len(s.asked) != 9 {
		t.Errorf("%d queries, want 4 for each side and 1 for both:\n%s", len(s.asked), strings.Join(s.asked, "\n"))
	}
	series := `istio_requests_total{reporter="destination",destination_workload_namespace="shop",rollouts_pod_template_hash="new",response_code=~"5.."}`
	first := fmt.Sprintf("sum((max_over_time(%[1]s[60s]) unless present_over_time(%[1]s[300s] offset 60s)) or increase(%[1]s[60s]))", series)
	if diff := cmp.Diff(first, s.asked[1]); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	for _, at := range s.times {
		if at != "1796029260" {
			t.Errorf("asked about the time %s", at)
		}
	}
}

func TestQueriesOfServices(t *testing.T) {
	s := newServer(t, func(string) (int, string) { return 200, number("1") })
	q := question(s.URL)
	q.Hosts = gate.Hosts{Canary: "web-canary.shop.svc.cluster.local", Stable: "web-stable.shop.svc.cluster.local"}
	q.Provider.Reporter = config.Source
	q.From = q.To.Add(-10 * time.Minute)
	if _, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	series := `istio_requests_total{reporter="source",destination_service="web-canary.shop.svc.cluster.local"}`
	first := fmt.Sprintf("sum((max_over_time(%[1]s[600s]) unless present_over_time(%[1]s[600s] offset 600s)) or increase(%[1]s[600s]))", series)
	if diff := cmp.Diff(first, s.asked[0]); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
	last := fmt.Sprintf("count(present_over_time(%s[600s] offset 600s) or present_over_time(%s[600s] offset 600s))",
		series, strings.Replace(series, "canary", "stable", 1))
	if diff := cmp.Diff(last, s.asked[8]); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}

func TestOnlyWhatIsNeededIsAsked(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*gate.Question)
		want   int
	}{
		"the canary alone":                     {func(q *gate.Question) { q.CanaryOnly = true }, 3},
		"no latency":                           {func(q *gate.Question) { q.Latency = false }, 5},
		"requests are counted by an own query": {func(q *gate.Question) { q.Provider.Queries.Requests = "x" }, 8},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newServer(t, func(string) (int, string) { return 200, number("1") })
			q := question(s.URL)
			tc.change(&q)
			if _, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), q); err != nil || len(s.asked) != tc.want {
				t.Errorf("%d queries (%v), want %d", len(s.asked), err, tc.want)
			}
		})
	}
}

func TestQueriesOfOnesOwn(t *testing.T) {
	s := newServer(t, func(string) (int, string) { return 200, number("1") })
	q := question(s.URL)
	q.CanaryOnly = true
	q.Hosts.Canary = "web-canary.shop.svc.cluster.local"
	q.From = q.To.Add(-1500 * time.Millisecond)
	q.Provider.Queries.Requests = `sum(x{h="{{hash}}",n="{{ namespace }}",s="{{service}}",w="{{side}}"}[{{window}}])`
	if _, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	want := `sum(x{h="new",n="shop",s="web-canary.shop.svc.cluster.local",w="canary"}[1500ms])`
	if diff := cmp.Diff(want, s.asked[0]); diff != "" {
		t.Errorf("query (-want +got):\n%s", diff)
	}
}

func TestNothingIsNoTraffic(t *testing.T) {
	s := newServer(t, func(string) (int, string) { return 200, empty })
	got, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), question(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(gate.Numbers{}, got); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}

func TestWhatIsAtFaultInAQuery(t *testing.T) {
	for sentence, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"it cannot be parsed": {400, `{"status":"error","errorType":"bad_data","error":"1:5: parse error: unexpected end of input"}`,
			"query errors for the canary: 1:5: parse error: unexpected end of input"},
		"it cannot be computed": {422, `{"status":"error","errorType":"execution","error":"many-to-many matching not allowed"}`,
			"query errors for the canary: many-to-many matching not allowed"},
		"it gives several numbers": {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"pod":"a"},"value":[1,"1"]},{"metric":{"pod":"b"},"value":[1,"1"]}]}}`,
			`query errors for the canary: gives 2 numbers, such as {pod="a"}, where one is needed: put sum(…) around it`},
		"it gives a range": {200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"1"]]}]}}`,
			"query errors for the canary: gives a matrix where one number is needed"},
		"it gives a histogram": {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[[1,"0","1","1"]]}]}]}}`,
			"query errors for the canary: gives a histogram where a number is needed: use histogram_count(…) or histogram_sum(…)"},
		"it gives no number":            {200, number("NaN"), "query errors for the canary: gives NaN, which is no amount"},
		"it gives less than nothing":    {200, number("-1"), "query errors for the canary: gives -1, which is no amount"},
		"it gives more than everything": {200, number("+Inf"), "query errors for the canary: gives +Inf, which is no amount"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newServer(t, func(query string) (int, string) {
				if strings.Contains(query, "5..") {
					return tc.status, tc.body
				}
				return 200, number("1")
			})
			_, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), question(s.URL))
			var faulty *gate.QueryError
			if !errors.As(err, &faulty) || err.Error() != tc.want {
				t.Errorf("the error is %v, want %s", err, tc.want)
			}
		})
	}
}

func TestWhatKeepsTheServerFromAnswering(t *testing.T) {
	for sentence, tc := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"it is overloaded":                 {503, `{"status":"error","errorType":"timeout","error":"query timed out"}`, "server_error: server error: 503"},
		"it lets nobody in":                {403, "go away", "client_error: client error: 403"},
		"it is something else":             {404, "<html>", "client_error: client error: 404"},
		"it sends elsewhere":               {302, "", "bad_response: bad response code 302"},
		"its answer is none":               {200, "<html>", "bad_response"},
		"its answer is a text":             {200, `{"status":"success","data":{"resultType":"string","result":[1,"many"]}}`, `unexpected value type "string"`},
		"its answer is cut off":            {200, `{"status":"success","data":{"resultType":"vec`, "bad_response"},
		"its answer never ends":            {200, `{"status":"success","data":{"resultType":"vector","result":[` + strings.Repeat(" ", 2<<20) + `]}}`, "the answer is longer than 1048576 bytes"},
		"a store behind it did not answer": {200, strings.Replace(empty, `"status"`, `"warnings":["store 2 is away"],"status"`, 1), "the answer is not complete: store 2 is away"},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newServer(t, func(string) (int, string) { return tc.status, tc.body })
			_, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), question(s.URL))
			var faulty *gate.QueryError
			if err == nil || errors.As(err, &faulty) || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), s.URL+": requests: ") {
				t.Errorf("the error is %v, want one with %q", err, tc.want)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	t.Run("it is not there", func(t *testing.T) {
		s := newServer(t, nil)
		s.Close()
		_, err := prometheus.New(prometheus.Options{}).Numbers(t.Context(), question(s.URL))
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestAServerThatHangsIsGivenUp(t *testing.T) {
	hang := make(chan struct{})
	s := newServer(t, func(string) (int, string) { <-hang; return 200, empty })
	t.Cleanup(func() { close(hang) })
	client := prometheus.New(prometheus.Options{Timeout: 50 * time.Millisecond})
	_, err := client.Numbers(t.Context(), question(s.URL))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), s.URL+" has not answered within 50ms: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestNoMoreThanSoManyQuestionsAtATime(t *testing.T) {
	entered, hang := make(chan struct{}, 3), make(chan struct{})
	s := newServer(t, func(string) (int, string) { entered <- struct{}{}; <-hang; return 200, empty })
	client := prometheus.New(prometheus.Options{Concurrency: 2})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _, _ = client.Numbers(t.Context(), question(s.URL)) })
	}
	<-entered
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Numbers(ctx, question(s.URL))
	if err == nil || err.Error() != "2 other questions are under way: context canceled" {
		t.Errorf("the third question: %v", err)
	}
	if len(entered) != 0 {
		t.Error("the third question was asked")
	}
	go func() {
		for range entered { // the queries that follow
		}
	}()
	close(hang)
	all.Wait()
	close(entered)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheTokenIsReadAgainAndGoesToTheOperatorsServerAlone(t *testing.T) {
	own := newServer(t, func(string) (int, string) { return 200, empty })
	other := newServer(t, func(string) (int, string) { return 200, empty })
	file := filepath.Join(t.TempDir(), "token")
	client := prometheus.New(prometheus.Options{Address: own.URL, TokenFile: file})
	ask := func(s *server) (string, error) {
		s.tokens = nil
		_, err := client.Numbers(t.Context(), question(s.URL))
		if len(s.tokens) == 0 {
			return "", err
		}
		return s.tokens[len(s.tokens)-1], err
	}
	if _, err := ask(own); err == nil || !strings.HasPrefix(err.Error(), "--prometheus-token-file: ") {
		t.Errorf("without the file the error is %v", err)
	}
	for content, want := range map[string]string{"first\n": "Bearer first", "second": "Bearer second"} {
		write(t, file, content)
		if token, err := ask(own); err != nil || token != want {
			t.Errorf("the token is %q (%v), want %q", token, err, want)
		}
	}
	if token, err := ask(other); err != nil || token != "" {
		t.Errorf("the other server gets %q (%v)", token, err)
	}
	for _, content := range []string{"", " \n", "a\nb", strings.Repeat("x", 2<<20)} {
		write(t, file, content)
		if _, err := ask(own); err == nil || !strings.HasPrefix(err.Error(), "--prometheus-token-file: ") || len(own.tokens) > 0 {
			t.Errorf("a token of %d bytes: %v, and %d queries", len(content), err, len(own.tokens))
		}
	}
}

func TestTheTokenDoesNotFollowARedirect(t *testing.T) {
	other := newServer(t, func(string) (int, string) { return 200, empty })
	own := httptest.NewServer(http.RedirectHandler(other.URL+"/api/v1/query", http.StatusTemporaryRedirect))
	t.Cleanup(own.Close)
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "secret")
	_, err := prometheus.New(prometheus.Options{Address: own.URL, TokenFile: file}).Numbers(t.Context(), question(own.URL))
	if err == nil || len(other.asked) > 0 {
		t.Errorf("the redirect was followed: %v, %d queries", err, len(other.asked))
	}
}

func TestTheCertificatesAreReadAgain(t *testing.T) {
	s := newServer(t, func(string) (int, string) { return 200, empty })
	secure := httptest.NewTLSServer(s)
	t.Cleanup(secure.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	client := prometheus.New(prometheus.Options{Address: secure.URL, CAFile: file})
	ask := func() error {
		_, err := client.Numbers(t.Context(), question(secure.URL))
		return err
	}
	if err := ask(); err == nil || !strings.HasPrefix(err.Error(), "--prometheus-ca-file: ") {
		t.Errorf("without the file the error is %v", err)
	}
	write(t, file, "none")
	if err := ask(); err == nil || !strings.Contains(err.Error(), "holds no certificate in PEM") {
		t.Errorf("without a certificate the error is %v", err)
	}
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	for range 2 {
		if err := ask(); err != nil {
			t.Error(err)
		}
	}
	bare := prometheus.New(prometheus.Options{Address: secure.URL})
	if _, err := bare.Numbers(t.Context(), question(secure.URL)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the certificates the error is %v", err)
	}
}
