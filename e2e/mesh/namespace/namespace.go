package namespace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// variable tells a program that it runs inside.
const variable = "ROLLOUTS_LAB_NAMESPACE"

// Inside tells whether this program was started by [Run].
func Inside() bool { return os.Getenv(variable) != "" }

// Run starts this program again, with the same arguments, input and outputs, in
// a new network namespace, passes signals on to it, and returns its exit code
// once it has ended. It dies with its parent. An error means that it could not be
// started.
//
// The calling goroutine must be locked to its thread or be the main one: the
// kernel ends the child when the thread ends that started it.
func Run() (code int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = attributes(os.Geteuid(), os.Getegid())
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s in a network namespace (the kernel must allow this user to make one): %w", self, err)
	}
	ended := make(chan struct{})
	defer close(ended)
	go passOn(signals, cmd.Process, ended)
	return exitCode(cmd.Wait())
}

// attributes are those of the child. Its own process group keeps a terminal's
// Ctrl-C from reaching it twice. Whoever is not root becomes root of a user
// namespace, which is where a network namespace can be set up.
func attributes(uid, gid int) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL, Setpgid: true}
	if uid != 0 {
		attributes.Cloneflags |= unix.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return attributes
}

func passOn(signals <-chan os.Signal, to *os.Process, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			_ = to.Signal(s) // it may have ended this moment
		case <-ended:
			return
		}
	}
}

// exitCode is a shell's: 128 and the signal for who died of one.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
