package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// reportEvery is the time between two lines about a running build. A cold
	// build of kube-apiserver takes many minutes; silence would look like a hang.
	reportEvery = 20 * time.Second
	// lockPoll is how often a build asks whether the other process, which
	// builds the same component, has finished.
	lockPoll = 200 * time.Millisecond
	// keptOutput is how many lines of a failed build the error carries.
	keptOutput = 40
)

// Build builds those of the components whose binary is missing, all that the tests
// need when none is named, and says on progress what it does and how far it is.
//
// A binary appears under its name only when it is complete, and a file lock
// keeps two processes from building the same one, so Build may be called by
// several tests at once, and while `lab build` runs. The error names the
// component and holds the end of the compiler's output.
func Build(ctx context.Context, progress io.Writer, components ...Component) error {
	if len(components) == 0 {
		components = Components()
	}
	for i, c := range components {
		step := fmt.Sprintf("%s (%d of %d)", c, i+1, len(components))
		if err := c.build(ctx, &report{out: progress, step: step}); err != nil {
			return fmt.Errorf("build %s: %w", c, err)
		}
	}
	return nil
}

func (c Component) build(ctx context.Context, r *report) error {
	path, err := c.Path()
	if err != nil {
		return err
	}
	if exists(path) {
		return nil
	}
	if assets := os.Getenv(assetsVariable); c.asset && assets != "" {
		return fmt.Errorf("no %s in %s=%s: fill that folder with setup-envtest, or unset the variable", c.binary, assetsVariable, assets)
	}
	unlock, err := lockFolder(ctx, filepath.Dir(path), r)
	if err != nil {
		return err
	}
	defer unlock()
	if exists(path) { // built by the process that held the lock
		return nil
	}
	return c.compile(ctx, path, r)
}

func (c Component) compile(ctx context.Context, path string, r *report) error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	version, err := c.Version()
	if err != nil {
		return err
	}
	flags := "-s -w"
	if c.stamp != nil {
		flags += " " + c.stamp(version)
	}
	return goBuild(ctx, c.source(dir), path, r, "-tags", c.tags, "-ldflags", flags, c.pkg)
}

// goBuild builds into a file beside path and moves it there, so that no one
// ever starts half a program.
func goBuild(ctx context.Context, dir, path string, r *report, args ...string) error {
	temporary := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	defer os.Remove(temporary)
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-v", "-buildvcs=false", "-o", temporary}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	// The go command passes an interrupt on to the compilers it started; a kill would not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	// Both streams share one writer, which exec then copies to from one goroutine.
	cmd.Stdout, cmd.Stderr = r, r
	stop := r.start()
	err := cmd.Run()
	stop()
	if err != nil {
		return errors.Join(err, ctx.Err(), errors.New(r.output()))
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	r.say("done after %s", r.elapsed())
	return nil
}

// lockFolder takes the lock of a folder of binaries, waiting for another
// process that has it. The lock is the kernel's: it ends with its holder.
func lockFolder(ctx context.Context, folder string, r *report) (unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for told := false; ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if !told {
			r.say("another process is building here, waiting for it")
			told = true
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// report tells people how a build goes. As a writer it takes the output of
// `go build -v`, which names each package it compiles, and counts those.
type report struct {
	out  io.Writer
	step string

	mu       sync.Mutex
	began    time.Time
	rest     string // of a line not yet complete
	lines    []string
	packages int
	latest   string
}

func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest += string(p)
	for {
		line, rest, found := strings.Cut(r.rest, "\n")
		if !found {
			return len(p), nil
		}
		r.rest = rest
		r.take(line)
	}
}

// take sorts a line of output: a lone import path is a package compiled,
// anything else may be what explains a failure.
func (r *report) take(line string) {
	if line != "" && !strings.ContainsAny(line, " \t:") {
		r.packages++
		r.latest = line
		return
	}
	r.lines = append(r.lines, line)
	if len(r.lines) > keptOutput {
		r.lines = r.lines[1:]
	}
}

// start says that the build began and goes on to say how far it is.
func (r *report) start() (stop func()) {
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	r.say("building")
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(reportEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				r.mu.Lock()
				packages, latest := r.packages, r.latest
				r.mu.Unlock()
				r.say("building for %s, %d packages compiled, now %s", r.elapsed(), packages, latest)
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (r *report) say(format string, args ...any) {
	if r.out != nil {
		fmt.Fprintf(r.out, "lab: %s: %s\n", r.step, fmt.Sprintf(format, args...))
	}
}

func (r *report) elapsed() time.Duration { return time.Since(r.began).Round(time.Second) }

// output is what the build printed beside the packages' names.
func (r *report) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSpace(strings.Join(append(r.lines, r.rest), "\n"))
}

// PluginOptions say how to build the plugin. The zero value builds it as
// people get it.
type PluginOptions struct {
	// Race builds with the race detector, which needs a C compiler.
	Race bool
	// Progress is told what is built; nil means nobody.
	Progress io.Writer
}

// BuildPlugin builds the plugin from the repository's root module and returns
// the path of the binary. It always asks the go command, whose cache makes an
// unchanged plugin a matter of a second. Builds with and without Race do not
// overwrite each other.
func BuildPlugin(ctx context.Context, options PluginOptions) (string, error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	folder, args := "plugin", []string{"-ldflags", "-s -w"}
	if options.Race {
		folder, args = "plugin-race", []string{"-race"}
	}
	path := filepath.Join(dir, ".bin", folder, "rollouts-plugin-trafficrouter-istio")
	r := &report{out: options.Progress, step: folder}
	unlock, err := lockFolder(ctx, filepath.Dir(path), r)
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := goBuild(ctx, filepath.Dir(dir), path, r, append(args, "./plugin")...); err != nil {
		return "", fmt.Errorf("build plugin: %w", err)
	}
	return path, nil
}
