package hostname_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/argoproj-labs/rollouts-plugin-trafficrouter-istio/pkg/hostname"
)

func TestCanonical(t *testing.T) {
	const web = "web.shop.svc.cluster.local"
	for sentence, tc := range map[string]struct {
		host, domain string
		want         string
	}{
		"a short name belongs to the namespace":            {host: "web", want: web},
		"service and namespace":                            {host: "web.shop", want: web},
		"service, namespace and svc":                       {host: "web.shop.svc", want: web},
		"the full name":                                    {host: web, want: web},
		"a trailing dot means nothing":                     {host: web + ".", want: web},
		"a trailing dot means nothing in shorter forms":    {host: "web.shop.svc.", want: web},
		"upper case means nothing":                         {host: "Web.Shop.SVC.Cluster.Local", want: web},
		"a short name in upper case":                       {host: "WEB", want: web},
		"another namespace before svc":                     {host: "web.other.svc", want: "web.other.svc.cluster.local"},
		"another namespace in full":                        {host: "web.other.svc.cluster.local", want: "web.other.svc.cluster.local"},
		"two labels may be a foreign name":                 {host: "example.com", want: "example.com"},
		"two labels in upper case":                         {host: "Example.COM.", want: "example.com"},
		"another namespace without svc is left alone":      {host: "web.other", want: "web.other"},
		"a foreign name of four labels":                    {host: "a.b.c.d", want: "a.b.c.d"},
		"a foreign name of three labels":                   {host: "www.example.com", want: "www.example.com"},
		"a foreign name with svc in another place":         {host: "svc.shop.web", want: "svc.shop.web"},
		"a name of the cluster set is another host":        {host: "web.shop.svc.clusterset.local", want: "web.shop.svc.clusterset.local"},
		"a wildcard under a domain":                        {host: "*.Shop.svc", want: "*.shop.svc"},
		"a wildcard under the namespace":                   {host: "*.shop", want: "*.shop"},
		"the wildcard for everything":                      {host: "*", want: "*"},
		"an address of version 4":                          {host: "10.0.0.1", want: "10.0.0.1"},
		"an address of version 6":                          {host: "FD00::1", want: "fd00::1"},
		"no name":                                          {host: "", want: ""},
		"a dot alone":                                      {host: ".", want: "."},
		"an absolute name of one label is not short":       {host: "web.", want: "web."},
		"two trailing dots are no DNS name":                {host: "web.shop..", want: "web.shop.."},
		"an empty label is no DNS name":                    {host: "web..svc", want: "web..svc"},
		"a leading dot is no DNS name":                     {host: ".shop.svc", want: ".shop.svc"},
		"another cluster domain":                           {host: "web", domain: "corp.example", want: "web.shop.svc.corp.example"},
		"another cluster domain, dotted and in upper case": {host: "web.shop", domain: ".Corp.Example.", want: "web.shop.svc.corp.example"},
		"the default domain is foreign in another":         {host: web, domain: "corp.example", want: web},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := hostname.Canonical(tc.host, "shop", tc.domain); got != tc.want {
				t.Errorf("Canonical(%q) = %q, want %q", tc.host, got, tc.want)
			}
		})
	}
}

func TestCanonicalWithoutANamespace(t *testing.T) {
	for host, want := range map[string]string{
		"web":          "web",
		"web.":         "web.",
		"web.shop":     "web.shop",
		"web.shop.svc": "web.shop.svc.cluster.local",
	} {
		if got := hostname.Canonical(host, "", ""); got != want {
			t.Errorf("Canonical(%q) without a namespace = %q, want %q", host, got, want)
		}
	}
}

func TestSame(t *testing.T) {
	for sentence, tc := range map[string]struct {
		a, inA, b, inB string
		want           bool
	}{
		"the short name in its own namespace and the full name":    {"web", "shop", "web.shop.svc.cluster.local", "gateway", true},
		"the short name of another namespace":                      {"web", "shop", "web", "other", false},
		"a service of the same name elsewhere, in full":            {"web", "shop", "web.other.svc.cluster.local", "shop", false},
		"a service of the same name elsewhere, with its namespace": {"web", "shop", "web.other", "shop", false},
		"service and namespace, said in a third namespace":         {"web", "shop", "web.shop", "gateway", true},
		"service and namespace, both said in a third namespace":    {"web.shop", "gateway", "web.shop.svc", "gateway", true},
		"service and namespace with a trailing dot":                {"web", "shop", "web.shop.", "gateway", true},
		"a foreign name and itself":                                {"example.com", "shop", "EXAMPLE.com", "other", true},
		"a foreign name and a service of the same first label":     {"example.com", "shop", "example", "shop", false},
		"a wildcard and a service under it":                        {"*.shop", "shop", "web.shop", "shop", false},
		"a wildcard is never completed":                            {"*.shop", "gateway", "*.shop.svc.cluster.local", "gateway", false},
		"a short name that could not be completed and a completed": {"web", "", "web", "shop", false},
		"another service":                                           {"web", "shop", "api", "shop", false},
		"a name whose namespace only begins alike":                  {"web.shop2", "shop", "web.shop", "shop", false},
		"a name that begins with the whole name of the other":       {"web.shop.svc.cluster.local.evil.example", "shop", "web", "shop", false},
		"an absolute name of one label and the short name":          {"web.", "shop", "web", "shop", false},
		"the same service name in the cluster set and in a cluster": {"web.shop.svc.clusterset.local", "shop", "web", "shop", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			a, b := hostname.Canonical(tc.a, tc.inA, ""), hostname.Canonical(tc.b, tc.inB, "")
			if got := hostname.Same(a, b, ""); got != tc.want {
				t.Errorf("Same(%q, %q) = %v, want %v", a, b, got, tc.want)
			}
			if got := hostname.Same(b, a, ""); got != tc.want {
				t.Errorf("Same(%q, %q) = %v, want %v", b, a, got, tc.want)
			}
		})
	}
}

func label() *rapid.Generator[string] { return rapid.StringMatching(`[a-z]([a-z0-9-]{0,5}[a-z0-9])?`) }

// shout writes some letters in upper case and may add a trailing dot where that
// changes nothing.
func shout(t *rapid.T, name string) string {
	if rapid.Bool().Draw(t, "upper") {
		name = strings.ToUpper(name)
	}
	if strings.Contains(name, ".") && rapid.Bool().Draw(t, "dot") {
		name += "."
	}
	return name
}

func TestAllFormsOfAServiceAreOneName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service, namespace := label().Draw(t, "service"), label().Draw(t, "namespace")
		domain := rapid.SampledFrom([]string{"cluster.local", "corp.example", "local"}).Draw(t, "domain")
		want := service + "." + namespace + ".svc." + domain
		for _, form := range []string{service, service + "." + namespace, service + "." + namespace + ".svc", want} {
			if got := hostname.Canonical(shout(t, form), namespace, domain); got != want {
				t.Errorf("Canonical(%q) = %q, want %q", form, got, want)
			}
		}
	})
}

func TestNamespacesAreNeverConfused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service, namespace := label().Draw(t, "service"), label().Draw(t, "namespace")
		other := label().Filter(func(s string) bool { return s != namespace }).Draw(t, "other")
		ours := hostname.Canonical(service, namespace, "")
		for _, form := range []string{service + "." + other, service + "." + other + ".svc", service + "." + other + ".svc.cluster.local"} {
			for _, in := range []string{namespace, other} {
				if theirs := hostname.Canonical(shout(t, form), in, ""); hostname.Same(ours, theirs, "") {
					t.Errorf("%q of namespace %s was taken for %q", form, in, ours)
				}
			}
		}
	})
}

func TestCanonicalTwiceIsCanonical(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"web", "shop", "svc", "SVC", "cluster", "local", "*", "", ".", "..", "1", "é", ":", "com"})
	rapid.Check(t, func(t *rapid.T) {
		host := strings.Join(rapid.SliceOfN(pieces, 0, 7).Draw(t, "labels"), rapid.SampledFrom([]string{".", ""}).Draw(t, "between"))
		namespace := rapid.SampledFrom([]string{"", "shop", "svc", "com"}).Draw(t, "namespace")
		once := hostname.Canonical(host, namespace, "")
		if twice := hostname.Canonical(once, namespace, ""); twice != once {
			t.Errorf("Canonical(%q) = %q, and of that %q", host, once, twice)
		}
		if !hostname.Same(once, once, "") {
			t.Errorf("%q is not the same as itself", once)
		}
	})
}

func FuzzCanonical(f *testing.F) {
	f.Add("web", "shop", "")
	f.Add("WEB.shop.svc.", "shop", "corp.example.")
	f.Add("..", ".", ".")
	f.Add("ſvc.ſ", "s", "İ")
	f.Fuzz(func(t *testing.T, host, namespace, domain string) {
		once := hostname.Canonical(host, namespace, domain)
		if host != "" && once == "" {
			t.Errorf("the name %q was lost", host)
		}
		if hostname.Same(once, once+"x", domain) {
			t.Errorf("%q and %q are taken for the same", once, once+"x")
		}
	})
}
