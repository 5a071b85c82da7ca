// Package cmdline is what the command lines of this module's programs have in common:
// a text above the list of flags, help that is asked for and so no error, and all faults
// told at once. It also writes the files that a flag names. What the flags are is each
// program's own matter.
package cmdline

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// Flags are those of one program. They are listed in the order in which they were made.
type Flags struct {
	*pflag.FlagSet
	usage string
	help  bool
}

// New makes the flags of a program. The usage stands above their list and ends with a
// line break. Call [Flags.Parse] once all flags are made.
func New(program, usage string) *Flags {
	f := &Flags{FlagSet: pflag.NewFlagSet(program, pflag.ContinueOnError), usage: usage}
	f.SortFlags = false
	f.Usage = func() {} // who calls Parse knows where to print
	return f
}

// Parse reads the arguments. With help the person has asked for [Flags.Help], and
// nothing else that is wrong matters. The error is about one flag.
func (f *Flags) Parse(args []string) (help bool, err error) {
	f.BoolVarP(&f.help, "help", "h", false, "print this text")
	err = f.FlagSet.Parse(args)
	return f.help && err == nil, err
}

// Help is the text that a person gets who asks for it.
func (f *Flags) Help() string { return f.usage + f.FlagUsages() }

// Faults are what is wrong with what a person has given, so that they hear of all of it
// at once. The zero value has none.
type Faults []error

// Need notes a fault unless ok.
func (f *Faults) Need(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// Add notes an error of another check; nil is none.
func (f *Faults) Add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

// Err joins them; nil if there are none.
func (f Faults) Err() error { return errors.Join(f...) }

// ToFile makes the file anew and lets write fill it. The error is about the file, or
// write's own; what was written until then stays.
func ToFile(path string, write func(io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}
