package virtualservice

import (
	"cmp"
	"fmt"
)

// rewrite makes a managed route rewrite paths as its source does. rewrite.uri takes
// the place of what the route's uri has matched, so that a longer prefix, or an exact
// path in the place of a prefix, needs the rest of it in rewrite.uri as well: prefix
// /api that is rewritten to /v1 makes /v1/cart of exact /api/cart.
func (w *writer) rewrite(content block, combinations []combination) {
	var rule block
	var uri string
	w.read(content, "rewrite", &rule)
	w.read(rule, "uri", &uri)
	if w.err != nil || uri == "" || given(rule["uriRegexRewrite"]) {
		return
	}
	first, err := combinations[0].rewritten(uri)
	for _, c := range combinations {
		other, failed := c.rewritten(uri)
		if err = cmp.Or(err, failed); err == nil && other != first {
			err = fmt.Errorf("rewrite.uri would have to be %q for one match and %q for another: make two routes of it", first, other)
		}
	}
	if w.err = err; first == uri {
		return
	}
	w.put(rule, "uri", first)
	w.put(content, "rewrite", rule)
}

// rewritten is what rewrite.uri has to be for this match.
func (c combination) rewritten(uri string) (string, error) {
	from := c.from
	if from.form == unset {
		from = condition{prefix, "/"} // which is how Istio matches any path
	}
	of := comparison{path: true, fold: c.fold}
	switch {
	case c.from == c.to: // as with every exact path: it stays, or nothing does
		return uri, nil
	case from.form == regex && c.to.form == exact:
		return uri, nil // a regex has matched the whole path, too
	case from.form == prefix && c.to.form != regex && of.begins(c.to.text, from.text):
		return uri + c.to.text[len(from.text):], nil
	}
	return "", fmt.Errorf("rewrite.uri replaces what %s of the route has matched, and cannot do the same with %s of the step: use uriRegexRewrite, or another match",
		from, c.to)
}
