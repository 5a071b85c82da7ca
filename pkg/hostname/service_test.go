package hostname

import "testing"

func TestAServicesNameIsTakenApart(t *testing.T) {
	for host, want := range map[string][3]string{
		"cart":                         {"shop", "cart", "yes"},
		"cart.other":                   {"other", "cart", "yes"},
		"cart.other.svc":               {"other", "cart", "yes"},
		"cart.other.svc.example.org":   {"other", "cart", "yes"},
		"CART.other.svc.example.org.":  {"other", "cart", "yes"},
		"cart.other.svc.cluster.local": {"", "", "no"},
		"api.example.com":              {"", "", "no"},
		"*.example.com":                {"", "", "no"},
	} {
		namespace, name, ok := Service(Canonical(host, "shop", "example.org"), "example.org")
		answer := "no"
		if ok {
			answer = "yes"
		}
		if got := [3]string{namespace, name, answer}; got != want {
			t.Errorf("%s: got %v, want %v", host, got, want)
		}
	}
}
