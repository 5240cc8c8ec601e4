package query

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// histogram counts durations in ms, in buckets whose width is 1/16 of their lower bound or less: log-linear. Below 32 ms every value
// has its own bucket; above, a bucket holds v with the same highest bit and the same four bits behind it. A value is thus known to
// 1/16 at worst, never too short. What it holds does not grow with the number of durations: at most 960 buckets of 8 bytes.
type histogram struct {
	buckets []packedBucket // in order, none empty
	n       uint64
	max     int64
}

// subBits is how many bits behind the highest one tell buckets apart.
const subBits = 4

// packedBucket is a bucket's number (16 bits) and its count (48 bits).
type packedBucket uint64

const (
	countBits = 48
	countMask = 1<<countBits - 1
)

func (b packedBucket) index() int    { return int(b >> countBits) }
func (b packedBucket) count() uint64 { return uint64(b) & countMask }

// bucketOf is the number of v's bucket; v is not negative.
func bucketOf(v int64) int {
	if v < 1<<subBits {
		return int(v)
	}
	shift := bits.Len64(uint64(v)) - 1 - subBits
	return (shift+1)<<subBits + int(v>>shift)&(1<<subBits-1)
}

// bucketBound is the largest value in the bucket of that number.
func bucketBound(index int) int64 {
	if index < 1<<subBits {
		return int64(index)
	}
	shift := index>>subBits - 1
	top := uint64(1<<subBits+index&(1<<subBits-1)+1) << shift
	return int64(min(top-1, math.MaxInt64))
}

// add counts a duration; ms is not negative.
func (h *histogram) add(ms int64) { h.addMany(bucketOf(ms), 1, ms) }

func (h *histogram) addMany(index int, n uint64, most int64) {
	h.n += n
	h.max = max(h.max, most)
	at, found := slices.BinarySearchFunc(h.buckets, index, func(b packedBucket, i int) int { return cmp.Compare(b.index(), i) })
	if found {
		h.buckets[at] += packedBucket(n)
		return
	}
	h.buckets = slices.Insert(h.buckets, at, packedBucket(index)<<countBits|packedBucket(n))
}

// merge adds what o counted.
func (h *histogram) merge(o *histogram) {
	for _, b := range o.buckets {
		h.addMany(b.index(), b.count(), o.max)
	}
}

// percentile is a duration that at least the share p of all do not exceed, 0 where nothing was counted: the smallest there is, or up
// to 1/16 more.
func (h *histogram) percentile(p float64) int64 {
	need := uint64(math.Ceil(p * float64(h.n)))
	for _, b := range h.buckets {
		if b.count() >= need {
			return min(bucketBound(b.index()), h.max)
		}
		need -= b.count()
	}
	return h.max
}

// BucketOut is one bucket of a histogram: Count durations of at most LeMs ms, and more than the bucket before holds.
type BucketOut struct {
	LeMs  int64  `json:"le_ms"`
	Count uint64 `json:"count"`
}

func (h *histogram) out() []BucketOut {
	out := make([]BucketOut, len(h.buckets))
	for i, b := range h.buckets {
		out[i] = BucketOut{bucketBound(b.index()), b.count()}
	}
	return out
}
