package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// openTerminal opens a pseudo-terminal of this size. What is written to slave can be read
// from master.
func openTerminal(t *testing.T, rows, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	control := func(request uintptr, argument unsafe.Pointer) {
		if _, _, err := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(argument)); err != 0 {
			t.Fatal(err)
		}
	}
	var number uint32
	var unlock int32
	size := [4]uint16{rows, columns}
	control(syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// onTerminal watches as a person at a terminal does, until the third look, and returns what
// the terminal got.
func onTerminal(t *testing.T, rows uint16, env map[string]string, args ...string) string {
	t.Helper()
	master, slave := openTerminal(t, rows, 200)
	var got bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&got, master) // ends with an error once nobody has the slave
	}()
	c := heldRollout(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.looking = func(look int) {
		if look == 3 {
			cancel()
		}
	}
	p := Program{Name: "inspect", Out: slave, Err: slave, Colour: Terminal(slave, func(name string) string { return env[name] }), patience: time.Hour}
	c.connect(&p)
	if code := Run(ctx, append([]string{"inspect", "web", "--watch", "--interval", "100ms"}, args...), p); code != exitFine {
		t.Errorf("exit code %d", code)
	}
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	<-read
	return strings.ReplaceAll(got.String(), "\r\n", "\n")
}

func TestARealTerminalIsDrawnAnewInColour(t *testing.T) {
	for sentence, tc := range map[string]struct {
		rows  uint16
		env   map[string]string
		args  []string
		draws int
		has   []string
		lacks []string
	}{
		"a terminal":             {60, nil, nil, 2, []string{"\x1b[33mWaits for the pods of revision", "\x1b[1mEvents\x1b[0m", "SkipSteps"}, []string{"--- "}},
		"without colour":         {60, map[string]string{"NO_COLOR": "1"}, nil, 2, []string{"\nWaits for the pods of revision", "SkipSteps"}, []string{"\x1b[33m", "\x1b[0m"}},
		"a small one":            {12, nil, nil, 2, []string{"Waits for the pods of revision", "more lines, for a larger window\n"}, []string{"SkipSteps"}},
		"a document, not drawn":  {60, nil, []string{"-o", "json"}, 0, []string{"\"waiting\": \"Waits for the pods of revision"}, []string{"\x1b"}},
		"one that cannot redraw": {60, map[string]string{"TERM": "dumb"}, nil, 0, []string{"--- 2026-03-04 15:16:17Z\nRollout shop/web"}, []string{"\x1b"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			if term, there := tc.env["TERM"]; there {
				t.Setenv("TERM", term)
			}
			got := onTerminal(t, tc.rows, tc.env, tc.args...)
			if draws := strings.Count(got, redraw); draws != tc.draws {
				t.Errorf("drawn %d times, want %d: %q", draws, tc.draws, got)
			}
			for _, want := range tc.has {
				if !strings.Contains(got, want) {
					t.Errorf("%q lacks %q", got, want)
				}
			}
			for _, not := range tc.lacks {
				if strings.Contains(got, not) {
					t.Errorf("%q has %q", got, not)
				}
			}
		})
	}
}
