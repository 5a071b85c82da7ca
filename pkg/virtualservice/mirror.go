package virtualservice

import "encoding/json"

// percentages are the fields that say how many requests the only mirror gets, the
// first that is there counting. Those from wholePercent on are numbers.
var percentages = []string{"mirrorPercentage", "mirror_percentage", "mirrorPercent", "mirror_percent"}

const wholePercent = 2

// mirror adds one to those of the route. Istio knows fields for one mirror and a list
// of several, and refuses a route that has both.
func (w *writer) mirror(content block, destination json.RawMessage, percentage int32) {
	before := w.mirrors(content)
	for _, name := range append([]string{"mirror", "mirrors"}, percentages...) {
		delete(content, name)
	}
	share := map[string]int32{"value": percentage}
	if len(before) == 0 {
		w.put(content, "mirror", destination)
		w.put(content, "mirrorPercentage", share)
		return
	}
	ours := block{}
	w.put(ours, "destination", destination)
	w.put(ours, "percentage", share)
	w.put(content, "mirrors", append(before, ours))
}

// mirrors are those of the route in the form of the list.
func (w *writer) mirrors(content block) []block {
	var list []block
	w.read(content, "mirrors", &list)
	if !given(content["mirror"]) {
		return list
	}
	only := block{"destination": content["mirror"]}
	for i, name := range percentages {
		if !given(content[name]) {
			continue
		}
		only["percentage"] = content[name]
		if i >= wholePercent {
			w.put(only, "percentage", block{"value": content[name]})
		}
		break
	}
	return append([]block{only}, list...)
}
