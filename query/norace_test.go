//go:build !race

package query

const usualStreams = 60
