package timeline

import (
	"strings"
	"testing"
)

func TestHostsAreCompletedAsIstioDoes(t *testing.T) {
	for sentence, c := range map[string]struct{ host, want string }{
		"a bare Service name is in the namespace":       {"web", "web.shop.svc.cluster.local"},
		"a name with a namespace keeps it":              {"web.other", "web.other.svc.cluster.local"},
		"a name with namespace and svc is completed":    {"web.shop.svc", "web.shop.svc.cluster.local"},
		"a full name stays":                             {"web.shop.svc.cluster.local", "web.shop.svc.cluster.local"},
		"a root dot does not make another host":         {"web.shop.svc.cluster.local.", "web.shop.svc.cluster.local"},
		"an external host of three labels stays":        {"api.example.com", "api.example.com"},
		"an empty host is no host of ours and no panic": {"", ".shop.svc.cluster.local"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := qualified(c.host, "shop"); got != c.want {
				t.Errorf("qualified(%q) = %q, want %q", c.host, got, c.want)
			}
		})
	}
}

func TestAnIncompleteSubjectIsRefused(t *testing.T) {
	for sentence, c := range map[string]struct {
		change func(*Subject)
		want   []string
	}{
		"nothing at all: every field is reported together": {
			func(s *Subject) { *s = Subject{} },
			[]string{"Namespace is empty", "Rollout is empty", "VirtualServices is empty", "two sides are not named"},
		},
		"one subset without the other": {
			func(s *Subject) { s.StableSubset = "" }, []string{"two sides are not named"},
		},
		"subsets without their DestinationRule": {
			func(s *Subject) { s.DestinationRule = "" }, []string{"two sides are not named"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := subsetSubject()
			c.change(&s)
			err := s.Validate()
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

func TestACompleteSubjectIsAccepted(t *testing.T) {
	hosts := Subject{Namespace: "shop", Rollout: "web", VirtualServices: []string{"web"}, CanaryService: "c", StableService: "s"}
	for sentence, s := range map[string]Subject{"by subset": subsetSubject(), "by host": hosts} {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestMaxIsHundredUnlessSet(t *testing.T) {
	for weight, want := range map[int32]int32{0: 100, -5: 100, 1000: 1000} {
		if got := (Subject{MaxWeight: weight}).Max(); got != want {
			t.Errorf("MaxWeight %d: Max() = %d, want %d", weight, got, want)
		}
	}
}
