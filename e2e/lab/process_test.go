package lab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// victimVariable makes the test binary start programs in the folder it names
// and wait to be killed.
const victimVariable = "LAB_TEST_VICTIM"

// family is a program with a child, which both would run for ever; it writes
// their process ids into the file given.
func family(file string) program {
	return program{name: "family", path: "/bin/sh", args: []string{"-c", `sleep 1000 & echo $$ $! >"$0"; wait`, file}}
}

// playVictim is what the killed process does.
func playVictim(dir string) int {
	p, err := newProcesses(dir)
	if err == nil {
		_, err = p.start(family(filepath.Join(dir, "pids")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {} // until killed
}

// awaitPids reads the file that family writes.
func awaitPids(t *testing.T, file string) []int {
	t.Helper()
	for range 200 {
		content, _ := os.ReadFile(file)
		if fields := strings.Fields(string(content)); len(fields) == 2 {
			pids := make([]int, 2)
			for i, field := range fields {
				pids[i], _ = strconv.Atoi(field)
			}
			return pids
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s does not appear", file)
	return nil
}

// awaitGone waits until none of the processes runs.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	for range 250 {
		gone := true
		for _, pid := range pids {
			gone = gone && syscall.Kill(pid, 0) == syscall.ESRCH
		}
		if gone {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("processes %v still run", pids)
}

func TestProgramsAndTheirChildrenEndWhenTheLabsProcessIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimVariable+"="+dir)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	pids := awaitPids(t, filepath.Join(dir, "pids"))
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // killed, as wanted
	awaitGone(t, pids)
	if !exists(filepath.Join(dir, "logs", "family.log")) {
		t.Error("the log is gone, too")
	}
}

func TestStopEndsProgramsAndTheirChildrenAndStartsNoMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := newProcesses(dir)
	if err != nil {
		t.Fatal(err)
	}
	proc, err := p.start(family(filepath.Join(dir, "pids")))
	if err != nil {
		t.Fatal(err)
	}
	pids := awaitPids(t, filepath.Join(dir, "pids"))
	if found, err := children(proc.pid()); err != nil || len(found) != 1 || found[0] != pids[1] {
		t.Errorf("children of %d: %v, %v, want %d", proc.pid(), found, err, pids[1])
	}
	p.stop()
	awaitGone(t, pids)
	if late, err := p.start(family(filepath.Join(dir, "late"))); err != nil {
		t.Error(err)
	} else if <-late.done; late.state() == "exit status 0" || exists(filepath.Join(dir, "late")) {
		t.Errorf("a program started after the stop: %s", late.state())
	}
	if p.reaper.ProcessState == nil {
		t.Error("the reaper still runs")
	}
}

func TestAChildLeftBehindByItsProgramIsTakenAlong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := newProcesses(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	proc, err := p.start(family(filepath.Join(dir, "pids")))
	if err != nil {
		t.Fatal(err)
	}
	pids := awaitPids(t, filepath.Join(dir, "pids"))
	if err := syscall.Kill(proc.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pids)
	<-proc.done
	if got := proc.tail(5); !contains(got, "==> family (signal: killed) "+proc.log) {
		t.Errorf("tail: %s", got)
	}
}

func TestAProgramThatDoesNotListenIsKilledAfterTheTimeGiven(t *testing.T) {
	t.Parallel()
	p, err := newProcesses(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	proc, err := p.start(program{name: "deaf", path: "/bin/sh", args: []string{"-c", "trap '' TERM; echo up; while :; do sleep 1; done"}})
	if err != nil {
		t.Fatal(err)
	}
	for !contains(proc.tail(1), "up") {
		time.Sleep(10 * time.Millisecond)
	}
	proc.stop(200 * time.Millisecond)
	if got := proc.state(); got != "signal: killed" {
		t.Errorf("ended by %q, want a kill", got)
	}
}

func TestWaitingForAProgramThatHasEndedEndsWithHow(t *testing.T) {
	t.Parallel()
	p, err := newProcesses(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	proc, err := p.start(program{name: "brief", path: "/bin/sh", args: []string{"-c", "exit 3"}})
	if err != nil {
		t.Fatal(err)
	}
	err = proc.await(within(t, time.Minute), func(context.Context) (bool, error) { return false, nil })
	if err == nil || !contains(err.Error(), "brief", "it ended: exit status 3") {
		t.Errorf("error: %v", err)
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{"a\nb\nc\n": "b\nc\n", "a\n": "a\n", "": "\n"} {
		if got := lastLines([]byte(text), 2); got != want {
			t.Errorf("last 2 lines of %q: %q, want %q", text, got, want)
		}
	}
}

func TestLinesReadsLinesLongerThanABuffer(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var got []int
	err := lines(io.MultiReader(strings.NewReader("a\n"), strings.NewReader(long+"\nb")), func(line []byte) { got = append(got, len(line)) })
	if err != nil || len(got) != 3 || got[1] != len(long) {
		t.Errorf("lengths %v, %v", got, err)
	}
}
