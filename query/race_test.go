//go:build race

package query

// The race detector makes everything several times as slow.
const (
	usualStreams = 4    // how many random streams a model test runs
	usualPairs   = 1000 // how many pairs of moments are compared, in all streams together
	underRace    = true
)
