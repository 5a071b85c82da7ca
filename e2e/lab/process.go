package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// launcher runs a program after noting its process id as a file's name in the
// folder $0. Exec keeps the id, so there is no moment in which the program
// runs without being noted.
const launcher = `: > "$0/$$" && exec "$@"`

// reaper waits for the end of its input, which comes when the lab closes it or
// dies, and then kills every process group noted in the lab's folder $1 and
// removes what is large, etcd's data and the controllers' plugins. It moves the
// notes first: without their folder the launcher starts nothing more. It
// ignores the signals of a terminal, as it has to outlive the lab.
const reaper = `trap '' INT TERM HUP
cat >/dev/null
mv "$1/run" "$1/ended"
for f in "$1"/ended/*; do kill -s KILL -- "-${f##*/}"; done 2>/dev/null
rm -rf "$1/etcd" "$1"/c[0-9]*`

// processes starts programs and makes sure that they end: on stop, and through
// a reaper when this process dies of a panic, a test's timeout or Ctrl-C.
// Each program leads a process group of its own, which its children join, so
// that the plugin ends with its controller.
type processes struct {
	dir      string // of the lab
	notes    string // folder with a file for each running process group, named by its id
	logs     string
	reaper   *exec.Cmd
	lifeline io.Closer

	mu   sync.Mutex
	list []*process
}

// process is one program, running or ended.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd     // nil for those that envtest starts
	done chan struct{} // closed when the program has ended
}

func newProcesses(dir string) (*processes, error) {
	p := &processes{dir: dir, notes: filepath.Join(dir, "run"), logs: filepath.Join(dir, "logs")}
	for _, folder := range []string{p.notes, p.logs} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	p.reaper = exec.Command("/bin/sh", "-c", reaper, "lab-reaper", dir)
	p.reaper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	lifeline, err := p.reaper.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.lifeline = lifeline
	if err := p.reaper.Start(); err != nil {
		return nil, fmt.Errorf("start the reaper: %w", err)
	}
	return p, nil
}

// program says what to start.
type program struct {
	name string // of the log file
	path string
	args []string
	dir  string
	env  []string // added to this process's environment
}

// start runs a program with its output in a log file, to which a later run
// under the same name appends.
func (p *processes) start(what program) (*process, error) {
	proc := &process{name: what.name, log: filepath.Join(p.logs, what.name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(proc.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	proc.cmd = exec.Command("/bin/sh", append([]string{"-c", launcher, p.notes, what.path}, what.args...)...)
	proc.cmd.Dir = what.dir
	proc.cmd.Env = append(os.Environ(), what.env...)
	proc.cmd.Stdout, proc.cmd.Stderr = out, out
	proc.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := proc.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", what.name, err)
	}
	go p.await(proc)
	p.remember(proc)
	return proc, nil
}

// await takes what a program left in its group with it, once it has ended.
func (p *processes) await(proc *process) {
	_ = proc.cmd.Wait() // how it ended is in ProcessState
	killGroup(proc.pid())
	_ = os.Remove(filepath.Join(p.notes, strconv.Itoa(proc.pid())))
	close(proc.done)
}

// remember keeps a process for tails and stop, in place of an ended one of the same name.
func (p *processes) remember(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, known := range p.list {
		if known.name == proc.name {
			p.list[i] = proc
			return
		}
	}
	p.list = append(p.list, proc)
}

// script writes a program that starts another one under the reaper's eyes, for
// envtest, which knows only a path to run. It asks each program for its help
// text first, to see what flags there are; the lab sets what is needed itself,
// and kube-apiserver would take a second to print it. The process id and the
// arguments are left in files, for started.
func (p *processes) script(dir, name, path string) (string, error) {
	file := filepath.Join(dir, name)
	content := fmt.Sprintf(`#!/bin/sh
[ "$1" = --help ] && exit 0
echo $$ > %s
printf '%%s\0' "$@" > %s
exec /bin/sh -c '%s' %s %s "$@"
`, quote(file+".pid"), quote(file+".args"), launcher, quote(p.notes), quote(path))
	return file + ".sh", os.WriteFile(file+".sh", []byte(content), 0o755)
}

// started reads what a script has started: the process id, which is that of its
// group, too, and the arguments.
func started(dir, name string) (pid int, args []string, err error) {
	file := filepath.Join(dir, name)
	id, err := os.ReadFile(file + ".pid")
	if err != nil {
		return 0, nil, err
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(id))); err != nil {
		return 0, nil, err
	}
	content, err := os.ReadFile(file + ".args")
	return pid, strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00"), err
}

// stop ends everything at once. Nothing here has state worth an orderly end.
func (p *processes) stop() {
	p.mu.Lock()
	list := slices.Clone(p.list)
	p.mu.Unlock()
	for _, proc := range list {
		proc.kill()
	}
	p.lifeline.Close()
	_ = p.reaper.Wait() // says nothing: a program may have ended by itself before
	for _, proc := range list {
		if proc.cmd != nil {
			<-proc.done
		}
	}
	p.awaitNoted()
}

// awaitNoted waits until the programs that envtest started are gone, too: they
// write into folders that are removed next.
func (p *processes) awaitNoted() {
	notes, _ := filepath.Glob(filepath.Join(p.dir, "ended", "*"))
	for _, note := range notes {
		pid, err := strconv.Atoi(filepath.Base(note))
		for range 500 {
			if err != nil || syscall.Kill(pid, 0) == syscall.ESRCH {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (proc *process) pid() int { return proc.cmd.Process.Pid }

func (proc *process) ended() bool {
	select {
	case <-proc.done:
		return true
	default:
		return false
	}
}

func (proc *process) kill() {
	if proc.cmd != nil && !proc.ended() {
		killGroup(proc.pid())
	}
}

// stop asks a program to end and kills its whole group when it has not after
// the time given.
func (proc *process) stop(patience time.Duration) {
	if proc.ended() {
		return
	}
	_ = proc.cmd.Process.Signal(syscall.SIGTERM) // it may end this moment
	select {
	case <-proc.done:
	case <-time.After(patience):
		proc.kill()
		<-proc.done
	}
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// await looks at a condition until it holds, and gives up at once when the
// program that is to bring it about has ended.
func (proc *process) await(ctx context.Context, holds func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return Until(ctx, proc.name, func(ctx context.Context) (bool, error) {
		if proc.ended() {
			return false, errors.New("it ended: " + proc.state())
		}
		return holds(ctx)
	})
}

// state is "running" or how the program ended.
func (proc *process) state() string {
	if proc.cmd == nil {
		return "run by envtest"
	}
	if !proc.ended() {
		return "running"
	}
	return proc.cmd.ProcessState.String()
}

// tail returns the last n lines of the log, below a line that names it.
func (proc *process) tail(n int) string {
	head := fmt.Sprintf("==> %s (%s) %s\n", proc.name, proc.state(), proc.log)
	content, err := os.ReadFile(proc.log)
	if err != nil {
		return head + err.Error() + "\n"
	}
	return head + lastLines(content, n)
}

func lastLines(content []byte, n int) string {
	all := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	if len(all) > n {
		all = all[len(all)-n:]
	}
	return string(bytes.Join(all, []byte("\n"))) + "\n"
}

// quote makes one word of a text for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// children lists the processes that the given one started: from /proc where
// there is one, else from ps, which not every container has.
func children(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return childrenFromPs(parent)
	}
	var found []int
	for _, name := range stats {
		content, err := os.ReadFile(name)
		if err != nil {
			continue // ended meanwhile
		}
		// The second field is the program's name in brackets, which may hold spaces.
		_, after, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(after)
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			found = append(found, pid)
		}
	}
	return found, nil
}

func childrenFromPs(parent int) ([]int, error) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && fields[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(fields[0])
			found = append(found, pid)
		}
	}
	return found, nil
}
