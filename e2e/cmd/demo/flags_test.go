package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/golden"
	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/e2e/scenarios"
)

func TestWithoutFlagsTheReportedIncidentIsPlayed(t *testing.T) {
	want := options{level: scenarios.Subset, replicas: 20, ready: 2, wait: 5 * time.Second, flaps: 15}
	got, _, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{})); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsInTheFlagsAreReportedTogether(t *testing.T) {
	_, _, err := parse([]string{"--level=mesh", "--replicas=0", "--ready=-1", "--wait=-1s", "--flaps=0", "now"})
	if err == nil {
		t.Fatal("six faults were accepted")
	}
	for _, flag := range []string{"--level", "--replicas", "--ready", "--wait", "--flaps", `"now"`} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not named in: %v", flag, err)
		}
	}
}

func TestMorePodsCannotBeReadyThanThereAre(t *testing.T) {
	if _, _, err := parse([]string{"--replicas=5", "--ready=6"}); err == nil || !strings.Contains(err.Error(), "0 to 5") {
		t.Errorf("error: %v", err)
	}
	if _, _, err := parse([]string{"--replicas=5", "--ready=5"}); err != nil {
		t.Error(err)
	}
}

func TestThePictureGoesIntoTheDocumentationUnlessTold(t *testing.T) {
	path, err := options{}.picture()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, "docs", "images", "incident.svg"); path != want {
		t.Errorf("the picture goes to %s, want %s", path, want)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if path, err = (options{svg: "mine.svg"}).picture(); err != nil || path != filepath.Join(here, "mine.svg") {
		t.Errorf("the picture goes to %s, error %v", path, err)
	}
}

func TestHelpNamesEveryFlagAndStartsNothing(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"--help"}, &out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "help.txt", out.String())
}

func TestAWrongFlagPointsToTheHelpAndStartsNothing(t *testing.T) {
	var out bytes.Buffer
	err := run(context.Background(), []string{"--replcas=5"}, &out)
	if err == nil || !strings.Contains(err.Error(), "--help") || out.Len() > 0 {
		t.Errorf("error %v, output %q", err, &out)
	}
}
