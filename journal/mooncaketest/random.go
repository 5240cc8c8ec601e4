package mooncaketest

import (
	"encoding/hex"
	"math/rand/v2"
)

// random is a seeded source; the same seed gives the same numbers in every version of this package.
type random struct{ source *rand.PCG }

func newRandom(seed uint64) random {
	return random{rand.NewPCG(seed, 0x6b766a6f75726e61)}
}

// below returns a number in [0, n). Its bias is below n/2^32.
func (r random) below(n int) int {
	return int(uint64(uint32(r.source.Uint64())) * uint64(n) >> 32)
}

// chance is true with this probability.
func (r random) chance(probability float64) bool {
	return float64(r.source.Uint64()>>11)/(1<<53) < probability
}

// appendHex appends 64 random hex digits: a SHA-256 as the connectors write it.
func (r random) appendHex(dst []byte) []byte {
	var raw [32]byte
	for i := 0; i < len(raw); i += 8 {
		u := r.source.Uint64()
		for j := range 8 {
			raw[i+j] = byte(u >> (8 * j))
		}
	}
	return hex.AppendEncode(dst, raw[:])
}
