package datadir

import (
	"math"
	"testing"
)

func TestTablesOf(t *testing.T) {
	for allowed, want := range map[uint64]int{0: 1, 100: 1, 128: 1, 256: 64, 1024: 448, 4096: 500, math.MaxUint64: 500} {
		if got := tablesOf(allowed); got != want {
			t.Errorf("%d descriptors: %d tables, want %d", allowed, got, want)
		}
	}
}
