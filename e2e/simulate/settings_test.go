package simulate

import (
	"strings"
	"testing"
	"time"
)

func TestAmountsAreNumbersOrShares(t *testing.T) {
	for text, want := range map[string]int32{"0": 0, "3": 3, "30": 20, "0%": 0, "1%": 1, "50%": 10, "100%": 20} {
		var a Amount
		if err := a.Set(text); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := a.of(20); got != want || a.String() != text {
			t.Errorf("%s of 20 pods are %d, want %d; it is written %q", text, got, want, a)
		}
	}
	for _, text := range []string{"", "-1", "101%", "x", "1.5", "%", "99999999999999999999"} {
		var a Amount
		if err := a.Set(text); err == nil {
			t.Errorf("%q was taken as %s", text, a)
		}
	}
}

func TestSettingsOutOfTheirRangeAreNamedAllAtOnce(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	s := Settings{Pause: time.Hour, Startup: -1, Spread: time.Hour, Replicas: -1, ScaleTo: 201, Revisions: 0, Timeout: 1}
	err := s.Validate()
	if err == nil {
		t.Fatal("nothing was found")
	}
	for _, flag := range []string{"--pause", "--startup", "--spread", "--replicas", "--scale-to", "--revisions", "--timeout"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not in %q", flag, err)
		}
	}
}
