package query

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every value lies in the bucket that says so, buckets follow one another without a hole, and none is wider than promised.
func TestBuckets(t *testing.T) {
	last := bucketOf(math.MaxInt64)
	if last >= 960 || bucketBound(last) != math.MaxInt64 {
		t.Fatalf("the last bucket is %d, up to %d", last, bucketBound(last))
	}
	low := int64(0)
	for i := 0; i <= last; i++ {
		high := bucketBound(i)
		if high < low || bucketOf(low) != i || bucketOf(high) != i {
			t.Fatalf("bucket %d is %d to %d, whose buckets are %d and %d", i, low, high, bucketOf(low), bucketOf(high))
		}
		if width := high - low; width > low/16 {
			t.Fatalf("bucket %d, %d to %d, is wider than 1/16", i, low, high)
		}
		low = high + 1
	}
}

// Percentiles are never too small, and at most 1/16 too large; merged histograms say what one would.
func TestPercentiles(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		rng := rand.New(rand.NewPCG(seed, 3))
		var parts [3]histogram
		var all histogram
		var values []int64
		for range 1 + rng.IntN(400) {
			v := rng.Int64N(1 << rng.IntN(50))
			values = append(values, v)
			parts[rng.IntN(3)].add(v)
			all.add(v)
		}
		var merged histogram
		for i := range parts {
			merged.merge(&parts[i])
		}
		if !slices.Equal(merged.buckets, all.buckets) || merged.n != all.n || merged.max != all.max {
			t.Fatalf("seed %d: merged %+v, want %+v", seed, merged, all)
		}
		slices.Sort(values)
		for _, p := range []float64{0.5, 0.9, 0.99, 1} {
			exact := values[int(math.Ceil(p*float64(len(values))))-1]
			if got := merged.percentile(p); got < exact || got > exact+exact/16 {
				t.Fatalf("seed %d: percentile %v is %d, exactly %d", seed, p, got, exact)
			}
		}
	}
	if got := new(histogram).percentile(0.5); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}
