package guard

// minRaisePercent of Max is what a rise has to reach to be worth a write: a ramp of 20 pods is then at most 20 writes,
// and one of 1 000 pods is not 1 000 full pushes to every proxy of the mesh.
const minRaisePercent = 5

// DefaultMinRaise is the default for NextWeight's minRaise, in parts of maxWeight: 5 %, rounded up. A maxWeight of 0 or
// less is read as 100.
func DefaultMinRaise(maxWeight int32) int32 {
	return saturate(ceilDiv(minRaisePercent*positiveMax(maxWeight), 100))
}

// NextWeight is the weight to write for a decision: 0 to d.Weight, in parts of d.Max.
//
// A lower weight is written at once, since fewer pods are an overload now. A higher one is written only when it rises by
// minRaise at least, or reaches what the controller asked for; until then written stays. A minRaise of 0 or less lets
// every rise through. When known is false, nothing is in the object to stay at.
//
// To let Message name what is really in the object, put the result into d.Weight first: it never turns a capped decision
// into a free one or the other way round.
func NextWeight(written int32, known bool, d Decision, minRaise int32) int32 {
	switch {
	case !known, written < 0, d.Weight <= written, d.Weight == d.Desired:
		return d.Weight
	case d.Weight-written >= minRaise:
		return d.Weight
	default:
		return written
	}
}
