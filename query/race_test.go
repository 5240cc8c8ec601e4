//go:build race

package query

// usualStreams is how many random streams a model test runs: the race detector makes each several times as slow.
const usualStreams = 4

const underRace = true
