package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestHelpNamesEveryCommandAndFlagAndIsNoError(t *testing.T) {
	for _, flag := range []string{"--help", "-h"} {
		out := &bytes.Buffer{}
		if err := run(t.Context(), out, []string{flag}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"lab build", "lab up", "--version", "--plugin", "--race", "--keep", "--help"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %s:\n%s", flag, want, out)
			}
		}
	}
}

func TestAWrongCommandLineIsAnErrorThatPointsToHelp(t *testing.T) {
	for name, args := range map[string][]string{
		"no command":       nil,
		"two commands":     {"build", "up"},
		"no such command":  {"down"},
		"no such flag":     {"up", "--fast"},
		"a flag's bad use": {"up", "--race=perhaps"},
	} {
		out := &bytes.Buffer{}
		if err := run(t.Context(), out, args); err == nil || !strings.Contains(err.Error(), "lab --help") {
			t.Errorf("%s: %v", name, err)
		}
		if out.Len() > 0 {
			t.Errorf("%s prints %s", name, out)
		}
	}
}
