package lab

import (
	"net/netip"
	"testing"
)

func TestEachRunOfKwokHasAddressesOfItsOwn(t *testing.T) {
	all, clients := netip.MustParsePrefix(PodCIDR), netip.MustParsePrefix("10.244.250.0/24")
	var before []netip.Prefix
	for run := range 29 {
		text, err := podCIDR(run)
		if err != nil {
			t.Fatal(err)
		}
		part := netip.MustParsePrefix(text)
		if part != part.Masked() || !all.Contains(part.Addr()) || part.Overlaps(clients) {
			t.Errorf("run %d has %s", run, part)
		}
		for _, other := range before {
			if part.Overlaps(other) {
				t.Errorf("run %d has %s, an earlier one had %s", run, part, other)
			}
		}
		before = append(before, part)
	}
	if text, err := podCIDR(29); err == nil {
		t.Errorf("a run too many has %s", text)
	}
}
