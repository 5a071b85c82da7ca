package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// prometheusPatience is how long Prometheus may take to end in good order.
const prometheusPatience = 10 * time.Second

// PrometheusOptions say how to start Prometheus. The zero value is right for tests.
type PrometheusOptions struct {
	// ScrapeInterval is a second if it is 0.
	ScrapeInterval time.Duration
}

// ScrapeTarget is one address that Prometheus scrapes.
type ScrapeTarget struct {
	// Address is host:port, Path the path of the metrics.
	Address, Path string
	// Labels are put on all series, as the discovery of pods does.
	Labels map[string]string
}

// Prometheus is a real one that scrapes what it is told to. Its methods may be called
// concurrently, and there may be several in a lab.
type Prometheus struct {
	// URL is where it is asked. It stays the same when Prometheus is restarted.
	URL string

	lab     *Lab
	program program

	mu   sync.Mutex
	proc *process
}

// StartPrometheus builds Prometheus if need be, starts it without any target and waits
// until it is ready. When that fails it has ended and the error holds its log's end.
func (l *Lab) StartPrometheus(ctx context.Context, options PrometheusOptions) (*Prometheus, error) {
	if err := Build(ctx, l.progress, PrometheusProgram); err != nil {
		return nil, err
	}
	p := &Prometheus{lab: l}
	if err := p.prepare(options); err != nil {
		return nil, fmt.Errorf("prepare Prometheus: %w", err)
	}
	return p, p.Start(ctx)
}

func (p *Prometheus) prepare(options PrometheusOptions) error {
	addresses, err := freeAddresses(1)
	if err != nil {
		return err
	}
	path, err := PrometheusProgram.Path()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.lab.dir, "prometheus-")
	if err != nil {
		return err
	}
	p.URL = "http://" + addresses[0]
	p.program = program{
		name: filepath.Base(dir), path: path, dir: dir,
		args: []string{
			"--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=2h",
			"--web.listen-address=" + addresses[0], "--log.level=warn",
		},
	}
	interval := cmp.Or(options.ScrapeInterval, time.Second)
	config := fmt.Sprintf("global: {scrape_interval: %[1]dms, scrape_timeout: %[1]dms}\n"+
		"scrape_configs: [{job_name: pods, file_sd_configs: [{files: [targets.json]}]}]\n", interval.Milliseconds())
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o644); err != nil {
		return err
	}
	return p.Scrape(nil)
}

// Scrape says what to scrape from now on. Prometheus hears of it within a moment; a target
// that is no longer named goes stale, as a pod that is gone does.
func (p *Prometheus) Scrape(targets []ScrapeTarget) error {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for _, t := range targets {
		labels := map[string]string{"__metrics_path__": t.Path}
		for name, value := range t.Labels {
			labels[name] = value
		}
		groups = append(groups, group{[]string{t.Address}, labels})
	}
	content, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	// Prometheus must never read half a file.
	file := filepath.Join(p.program.dir, "targets.json")
	if err := os.WriteFile(file+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// Start starts Prometheus after a Stop or Kill, with the data that it had, and waits until
// it is ready.
func (p *Prometheus) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil && !p.proc.ended() {
		return errors.New("Prometheus already runs")
	}
	proc, err := p.lab.processes.start(p.program)
	if err != nil {
		return err
	}
	p.proc = proc
	err = proc.await(ctx, func(ctx context.Context) (bool, error) {
		_, err := fetch(ctx, p.URL+"/-/ready")
		return err == nil, nil
	})
	if err != nil {
		proc.stop(0)
		return fmt.Errorf("Prometheus: %w\n%s", err, proc.tail(20))
	}
	return nil
}

// Stop ends Prometheus, in good order if it does so within ten seconds.
func (p *Prometheus) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil {
		p.proc.stop(prometheusPatience)
	}
}

// Kill ends Prometheus at once. Start brings it back.
func (p *Prometheus) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil || p.proc.ended() {
		return errors.New("Prometheus does not run")
	}
	p.proc.kill()
	<-p.proc.done
	return nil
}
