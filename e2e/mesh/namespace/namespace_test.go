package namespace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable says what a copy of this program that a test started has to do.
const roleVariable = "ROLLOUTS_LAB_NAMESPACE_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	switch {
	case role == "":
		os.Exit(m.Run())
	case !Inside():
		code, err := Run()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	default:
		os.Exit(play(role))
	}
}

// play is what the copy inside does.
func play(role string) int {
	switch role {
	case "talk":
		if err := talk(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "exit":
		code, _ := strconv.Atoi(os.Args[len(os.Args)-1])
		return code
	default: // wait
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
		return 0
	}
}

// talk serves on all addresses and asks at two pods' addresses which they are.
func talk() error {
	if err := MakeLocal(netip.MustParsePrefix("10.244.0.0/16")); err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", "0.0.0.0:8080")
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, conn.LocalAddr())
			conn.Close()
		}
	}()
	for _, address := range []string{"10.244.0.7:8080", "10.244.255.254:8080", "127.0.0.1:8080"} {
		answer, err := ask(address)
		if err != nil || answer != address {
			return fmt.Errorf("%s answered %q, error %v", address, answer, err)
		}
	}
	if _, err := ask("192.0.2.1:8080"); err == nil {
		return errors.New("an address outside of the namespace answered")
	}
	return nil
}

func ask(address string) (string, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// copyOf is a copy of this program with a role.
func copyOf(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

func TestEveryAddressOfThePodsIsLocalAndNothingElseIsReached(t *testing.T) {
	if out, err := copyOf("talk").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestTheExitCodeComesThrough(t *testing.T) {
	err := copyOf("exit", "7").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("ended with %v, want exit status 7", err)
	}
}

func TestOutsideOfANamespaceNothingIsMadeLocal(t *testing.T) {
	// A prefix that is local on every machine, should it not be refused.
	if err := MakeLocal(netip.MustParsePrefix("127.0.0.0/8")); err == nil {
		t.Error("the machine's own network was changed")
	}
}

// waiting starts a parent and returns it with the process id of its child.
func waiting(t *testing.T) (parent *exec.Cmd, child int) {
	t.Helper()
	parent = copyOf("wait")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return parent, child
}

func TestASignalReachesTheChildAndItsDeathIsTold(t *testing.T) {
	parent, _ := waiting(t)
	if err := parent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := parent.Wait()
	var exit *exec.ExitError
	if want := 128 + int(syscall.SIGTERM); !errors.As(err, &exit) || exit.ExitCode() != want {
		t.Errorf("ended with %v, want exit status %d", err, want)
	}
}

func TestTheChildDiesWithItsParent(t *testing.T) {
	parent, child := waiting(t)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	// Its end is the kernel's work, which is done when Wait returns or soon after.
	for range 500 {
		if gone(child) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d outlived its parent", child)
}

// gone counts a zombie, which whoever inherited it may not yet have reaped.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
