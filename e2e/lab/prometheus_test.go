package lab

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestPrometheusScrapesWhatItIsToldAndKeepsItsDataOverAKill(t *testing.T) {
	t.Parallel()
	ctx := within(t, 2*time.Minute)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "scraped{at=%q} 42\n", r.URL.Path)
	}))
	t.Cleanup(target.Close)
	p, err := shared.StartPrometheus(ctx, PrometheusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	knows := func(query, text string) {
		t.Helper()
		err := Until(ctx, text, func(ctx context.Context) (bool, error) {
			answer, err := fetch(ctx, p.URL+"/api/v1/query?query="+url.QueryEscape(query))
			return err == nil && bytes.Contains(answer, []byte(text)), nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	address := strings.TrimPrefix(target.URL, "http://")
	if err := p.Scrape([]ScrapeTarget{{Address: address, Path: "/pod", Labels: map[string]string{"hash": "new"}}}); err != nil {
		t.Fatal(err)
	}
	knows(`scraped{at="/pod",hash="new"}`, `"42"`)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err == nil {
		t.Error("a Prometheus that does not run was killed")
	}
	if err := p.Scrape(nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(ctx); err != nil {
		t.Fatal(err)
	}
	knows(`last_over_time(scraped[10m])`, `"42"`)
	if err := p.Start(ctx); err == nil {
		t.Error("Prometheus was started twice")
	}
}
