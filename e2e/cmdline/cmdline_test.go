package cmdline

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func flags() (*Flags, *int) {
	f := New("try", "Tries something.\n\nFlags:\n")
	n := f.Int("often", 1, "how often")
	f.Bool("all", false, "everything")
	return f, n
}

func TestHelpIsNoErrorAndListsTheFlagsInTheirOrder(t *testing.T) {
	f, _ := flags()
	if help, err := f.Parse([]string{"--often", "3", "-h"}); !help || err != nil {
		t.Errorf("help %t, error %v", help, err)
	}
	want := "Tries something.\n\nFlags:\n      --often int   how often (default 1)\n      --all         everything\n  -h, --help        print this text\n"
	if got := f.Help(); got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}

func TestArgumentsAreRead(t *testing.T) {
	f, n := flags()
	if help, err := f.Parse([]string{"--often", "3", "rest"}); help || err != nil || *n != 3 || f.Arg(0) != "rest" {
		t.Errorf("help %t, error %v, --often %d, rest %q", help, err, *n, f.Args())
	}
	f, _ = flags()
	if help, err := f.Parse([]string{"--help", "--oftn"}); help || err == nil || err.Error() != "unknown flag: --oftn" {
		t.Errorf("help %t, error %v", help, err)
	}
}

func TestFaultsAreToldTogether(t *testing.T) {
	var f Faults
	f.Need(true, "fine")
	f.Add(nil)
	if err := f.Err(); err != nil {
		t.Errorf("without a fault: %v", err)
	}
	other := errors.New("another check's")
	f.Need(false, "--often %d: use 1 to %d", 7, 5)
	f.Add(other)
	if err := f.Err(); err == nil || err.Error() != "--often 7: use 1 to 5\nanother check's" || !errors.Is(err, other) {
		t.Errorf("the faults are %v", err)
	}
}

func TestAFileIsWrittenAnewAndItsErrorsAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "picture.svg")
	text := func(text string) func(io.Writer) error {
		return func(out io.Writer) error { _, err := io.WriteString(out, text); return err }
	}
	for _, want := range []string{"a long text", "short"} {
		if err := ToFile(path, text(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("the file holds %q, %v, want %q", got, err, want)
		}
	}
	broken := errors.New("nothing to draw")
	if err := ToFile(path, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("of what could not be drawn it said %v", err)
	}
	if err := ToFile(filepath.Join(path, "below"), text("")); err == nil {
		t.Error("no error for a folder that is not there")
	}
}
