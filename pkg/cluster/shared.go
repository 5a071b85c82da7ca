package cluster

import "unique"

// shared returns an equal text of which there is one in the process: what an object
// was decoded from has each text anew, and namespaces and the keys of labels are in
// thousands of them.
func shared(text string) string { return unique.Make(text).Value() }

// sharedLabels are equal labels, whose keys and values are shared; but for the hash,
// which is another one each time.
func sharedLabels(labels map[string]string) map[string]string {
	if labels == nil {
		return nil
	}
	out := make(map[string]string, len(labels))
	for key, value := range labels {
		if key != hashLabel {
			value = shared(value)
		}
		out[shared(key)] = value
	}
	return out
}
