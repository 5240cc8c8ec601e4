//go:build !race

package query

const usualStreams = 60

const underRace = false
