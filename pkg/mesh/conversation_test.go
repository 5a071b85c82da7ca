package mesh

import (
	"errors"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// said is a request in short: type, names, version, nonce, and what else there is.
func said(request *discovery.DiscoveryRequest) string {
	if request == nil {
		return "nothing"
	}
	kind := request.GetTypeUrl()[strings.LastIndex(request.GetTypeUrl(), ".")+1:]
	text := kind + " [" + strings.Join(request.GetResourceNames(), " ") + "] version " + request.GetVersionInfo() + " nonce " + request.GetResponseNonce()
	if request.GetNode() != nil {
		text += " node"
	}
	if request.GetErrorDetail() != nil {
		text += " error " + request.GetErrorDetail().GetMessage()
	}
	return text
}

func allSaid(requests []*discovery.DiscoveryRequest) (all []string) {
	for _, request := range requests {
		all = append(all, said(request))
	}
	return all
}

func response(typeURL, version, nonce string) *discovery.DiscoveryResponse {
	return &discovery.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: version, Nonce: nonce}
}

func TestAConversation(t *testing.T) {
	c := newConversation(&core.Node{Id: "us"})
	expect := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: said %q, want %q", what, got, want)
		}
	}
	ask := func(names names) []string {
		t.Helper()
		requests, err := c.ask(names)
		if err != nil {
			t.Fatal(err)
		}
		return allSaid(requests)
	}
	answer := func(typeURL, version, nonce string, problem error) []string {
		return []string{said(c.answer(response(typeURL, version, nonce), problem))}
	}
	expect("who asks nothing", ask(names{}))
	expect("the first", ask(names{clusters: []string{"a"}}),
		"Cluster [a] version  nonce  node", "ClusterLoadAssignment [a] version  nonce ")
	expect("the same", ask(names{clusters: []string{"a"}}))
	expect("an answer", answer(clusterType, "1", "n1", nil), "Cluster [a] version 1 nonce n1")
	expect("a faulty answer keeps the version, and has the nonce", answer(clusterType, "2", "n2", errors.New("bad")), "Cluster [a] version 1 nonce n2 error bad")
	expect("more names", ask(names{clusters: []string{"a", "b"}, routes: []string{"r"}}),
		"Cluster [a b] version 1 nonce n2", "ClusterLoadAssignment [a b] version  nonce ", "RouteConfiguration [r] version  nonce ")
	// This answer was sent before istiod knew of b. It will not look at a request with the nonce before.
	expect("an answer that was under way", answer(clusterType, "3", "n3", nil), "Cluster [a b] version 3 nonce n3")
	expect("an answer that nobody asked for", answer("other", "1", "n", nil), "nothing")
	for _, typeURL := range resourceTypes {
		if got, want := len(c.asked(typeURL)), 2; (typeURL != routeType) != (got == want) {
			t.Errorf("%s: %d names", typeURL, got)
		}
	}
	if _, err := c.ask(names{routes: []string{"r"}}); !errors.Is(err, errNothingLeft) {
		t.Errorf("no cluster would mean all of them, and the error is %v", err)
	}
	if got := said(newConversation(nil).answer(response(routeType, "1", "n"), nil)); got != "nothing" {
		t.Errorf("routes that nobody asked for are confirmed: %s", got)
	}
}
