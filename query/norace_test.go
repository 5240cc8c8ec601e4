//go:build !race

package query

const (
	usualStreams = 60
	usualPairs   = 4800
	underRace    = false
)
