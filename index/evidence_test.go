package index

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func randomInt(rng *rand.Rand) int64 {
	switch rng.IntN(6) {
	case 0:
		return math.MinInt64 + int64(rng.IntN(2))
	case 1:
		return math.MaxInt64 - int64(rng.IntN(2))
	case 2:
		return int64(rng.IntN(3)) - 1
	}
	return testTime + int64(rng.IntN(1000))
}

func TestEvidenceRoundTrip(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 5000 {
		e := Evidence{
			Position: Position{randomNumber(rng, 64), uint32(randomNumber(rng, 32))}, Stored: rng.IntN(2) == 0, Epoch: randomNumber(rng, 64), Seq: randomNumber(rng, 64),
			Received: randomInt(rng),
		}
		if rng.IntN(2) == 0 {
			e.HasID, e.ID = true, randomNumber(rng, 64)
		}
		if rng.IntN(2) == 0 {
			e.HasTime, e.Time = true, randomInt(rng)
		}
		b := appendEvidence([]byte("head"), &e)[4:]
		got, err := decodeEvidence(b, e.Position)
		if err != nil || got != e {
			t.Fatalf("seed %d: %+v came back as %+v, %v", seed, e, got, err)
		}
		for cut := range b {
			if _, err := decodeEvidence(b[:cut], e.Position); err == nil {
				t.Fatalf("seed %d: %+v cut to %d bytes of %x was read", seed, e, cut, b)
			}
		}
		if _, err := decodeEvidence(append(b, 0), e.Position); err == nil {
			t.Fatalf("seed %d: %+v with a byte behind it was read", seed, e)
		}
	}
}

func TestMarkRoundTrip(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 5000 {
		m := Mark{From: randomNumber(rng, 64), End: Position{randomNumber(rng, 64), uint32(randomNumber(rng, 32))}, Cause: continuity.Cause(rng.IntN(13)), Received: randomInt(rng)}
		if rng.IntN(2) == 0 {
			m.HasTime, m.Time = true, randomInt(rng)
		}
		key := markKey(uint32(randomNumber(rng, 32)), m.From)
		if got, err := decodeMark(key, m.encode()); err != nil || got != m {
			t.Fatalf("seed %d: %+v came back as %+v, %v", seed, m, got, err)
		}
		if _, err := decodeMark(key[:12], m.encode()); err == nil {
			t.Fatal("a short key was read")
		}
		if _, err := decodeMark(key, nil); err == nil {
			t.Fatal("an empty value was read")
		}
	}
}

func FuzzEvidence(f *testing.F) {
	e := Evidence{Stored: true, Epoch: 2, Seq: 300, HasID: true, ID: 1 << 40, HasTime: true, Time: testTime, Received: testTime + 3}
	f.Add(appendEvidence(nil, &e))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		at := Position{7, 3}
		e, err := decodeEvidence(b, at)
		if err != nil {
			return
		}
		if again, err := decodeEvidence(appendEvidence(nil, &e), at); err != nil || again != e {
			t.Fatalf("%x: %+v came back as %+v, %v", b, e, again, err)
		}
	})
}

func FuzzMark(f *testing.F) {
	m := Mark{From: 5, End: Behind(9), Cause: continuity.Damaged, HasTime: true, Time: testTime, Received: testTime + 3}
	f.Add(markKey(1, 5), m.encode())
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		m, err := decodeMark(key, value)
		if err != nil {
			return
		}
		if again, err := decodeMark(key, m.encode()); err != nil || again != m {
			t.Fatalf("%x: %+v came back as %+v, %v", value, m, again, err)
		}
	})
}
