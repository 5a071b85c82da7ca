package timeline

// FollowSteps tells whether weights, in the order in which they were written, are
// these steps: each comes in its order, and what else comes lies on the way up to
// the next one. A plugin whose view of the pods is some milliseconds older than
// the controller's writes what it knows of first.
func FollowSteps(weights, steps []int32) bool {
	last, next := int32(0), 0
	for _, weight := range weights {
		switch {
		case next == len(steps):
			return false
		case weight == steps[next]:
			next++
		case weight <= last || weight > steps[next]:
			return false
		}
		last = weight
	}
	return next == len(steps)
}
