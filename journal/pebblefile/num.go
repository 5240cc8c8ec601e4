package pebblefile

import (
	"io"

	"github.com/cockroachdb/pebble/v2/record"
)

// recordsOf is record.NewReader, whose second parameter has a type that has no name outside of Pebble.
func recordsOf[N ~uint64](open func(io.Reader, N) *record.Reader, r io.Reader, num uint64) *record.Reader {
	return open(r, N(num))
}
