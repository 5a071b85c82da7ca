package config

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Level is how far VerifyWeight looks before it says that a weight is in place.
type Level string

// The levels, each including those before it. There are no others.
const (
	// Object reads the VirtualService and the DestinationRule back. It is the default.
	Object Level = "Object"
	// Endpoints also asks the EndpointSlices whether the pods that were counted on can
	// be reached. It needs rights that the stock ClusterRole does not have.
	Endpoints Level = "Endpoints"
	// Mesh also asks istiod what it tells the proxies. It needs --istiod-address.
	Mesh Level = "Mesh"
)

// OnUnavailable is what becomes of a weight that cannot be verified, because istiod
// or the EndpointSlices cannot be read.
type OnUnavailable string

// The two answers. There are no others.
const (
	// Proceed takes it as verified by what can be read, and says so in an Event. It is
	// the default.
	Proceed OnUnavailable = "Proceed"
	// Hold takes it as not verified.
	Hold OnUnavailable = "Hold"
)

// Verify is what a weight has to pass before a step of the canary is done.
type Verify struct {
	Level Level
	// Proxies tells to wait, too, until no proxy is known to lag behind. It is false
	// unless Level is Mesh.
	Proxies       bool
	OnUnavailable OnUnavailable
}

// verify reads the part about verification, which may be missing altogether.
func (c *checker) verify(block object) Verify {
	v := Verify{Level: Object, OnUnavailable: Proceed}
	n, ok := block.find("verify")
	if !ok {
		return v
	}
	o, ok := c.object(n, block.at.Child("verify"), verifyFields)
	if !ok {
		return v
	}
	if level, p := o.text("level"); p == given {
		v.Level = Level(c.oneOf(level, o.at.Child("level"), "level", string(Object), string(Endpoints), string(Mesh)))
	}
	if answer, p := o.text("onUnavailable"); p == given {
		v.OnUnavailable = OnUnavailable(c.oneOf(answer, o.at.Child("onUnavailable"), "answer", string(Proceed), string(Hold)))
	}
	v.Proxies = o.yes("proxies")
	// A level that is no level has been reported already.
	if v.Proxies && v.Level != Mesh && v.Level != "" {
		c.add(field.Invalid(o.at.Child("proxies"), true, "only istiod knows the proxies: set level to Mesh, or remove the field"))
	}
	return v
}

// oneOf takes the exact spelling of one of the words only, as Kubernetes does for
// its own; it returns "" for any other, and has reported that.
func (c *checker) oneOf(word string, at *field.Path, what string, words ...string) string {
	for _, w := range words {
		if w == word {
			return w
		}
	}
	detail := "unknown " + what + "."
	if near := closest(word, words); near != "" {
		detail = "unknown " + what + ": did you mean " + near + "?"
	}
	c.add(field.Invalid(at, show(word), detail+" There are "+strings.Join(words, ", ")))
	return ""
}
