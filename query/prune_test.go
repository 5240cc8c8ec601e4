package query

import (
	"math"
	"testing"

	"github.com/kvjournal/kvjournal/index"
)

func TestChoosePoint(t *testing.T) {
	// The first is the horizon; size is 100 less at each.
	points := []index.Point{{Offset: 50}, {Offset: 100, Received: 10}, {Offset: 200, Received: 20}, {Offset: 300, Received: 30}}
	size := func(p *index.Point) (uint64, error) { return 1000 - p.Offset, nil }
	for _, c := range []struct {
		l    pruneLimit
		want uint64
	}{
		{pruneLimit{offset: 250, received: math.MaxInt64}, 200},
		{pruneLimit{offset: 200, received: math.MaxInt64}, 200},
		{pruneLimit{offset: 99, received: math.MaxInt64}, 0},
		{pruneLimit{offset: math.MaxInt64, received: 29}, 200},
		{pruneLimit{offset: math.MaxInt64, received: 9}, 0},
		{pruneLimit{offset: math.MaxInt64, received: math.MaxInt64, bytes: 950}, 0},
		{pruneLimit{offset: math.MaxInt64, received: math.MaxInt64, bytes: 900}, 100},
		{pruneLimit{offset: math.MaxInt64, received: math.MaxInt64, bytes: 899}, 200},
		{pruneLimit{offset: math.MaxInt64, received: math.MaxInt64, bytes: 1}, 300},
	} {
		if got, err := choosePoint(points, c.l, size); got != c.want || err != nil {
			t.Errorf("%+v: %d, %v, want %d", c.l, got, err, c.want)
		}
	}
}
