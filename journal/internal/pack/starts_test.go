package pack

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// TestGroupsFromKeys packs group ids that come from their keys in many ways, or nearly, mixed.
func TestGroupsFromKeys(t *testing.T) {
	c := newCodec(t)
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
		hex := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = "0123456789abcdef"[rng.IntN(16)]
			}
			return string(b)
		}
		ways := []func(key string) string{
			func(key string) string { return "sglang-hicache:" + key[:min(len(key), 40)] },
			func(key string) string { return "p:" + key },
			func(key string) string { return key[:len(key)/2] },
			func(key string) string { return "other-" + hex(40) },
			func(key string) string { return "p:" + key[:min(len(key), 20)] + "!" },
			func(key string) string {
				return strings.Repeat("p", rng.IntN(2*maxPrefix)) + key[:min(len(key), 17+rng.IntN(3))]
			},
			func(key string) string { return "p:" + key[:min(len(key), minStart)-1] },
			func(key string) string { return "p" + key[:min(len(key), maxStart+rng.IntN(3))] },
		}
		var messages [][]byte
		for i := range 200 {
			key := hex([]int{64, 64, 16, 17, 5, 40, 2000}[rng.IntN(7)]) + []string{"", "_0_k"}[rng.IntN(2)]
			group := ways[rng.IntN(1+rng.IntN(len(ways)))](key)
			f := event.Fields{Type: event.Stored, ID: uint64(i + 1), Tenant: "t", Backend: "b", Medium: "cpu", Key: key, GroupID: &group}
			messages = append(messages, enc.AppendPayload(nil, int64(i), []event.Fields{f}, 0))
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { c.roundTrip(t, messages) })
	}
}

// TestStartsTakeNoRoom: a group id that is the start of the key costs nothing, whatever was seen before.
func TestStartsTakeNoRoom(t *testing.T) {
	c := newCodec(t)
	enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
	rng := rand.New(rand.NewPCG(1, 5))
	message := func(group func(key string) string) []byte {
		key := fmt.Sprintf("%016x%016x%016x%016x_0_k", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
		g := group(key)
		return enc.AppendPayload(nil, 1, []event.Fields{{Type: event.Stored, ID: 1, Tenant: "t", Backend: "b", Medium: "cpu", Key: key, GroupID: &g}}, 0)
	}
	var e Encoder
	e.Reset()
	e.Add(message(func(string) string { return "a group of its own" }))
	if e.Starts() {
		t.Error("there is a start where there is none")
	}
	const n = 1000
	for range n {
		e.Add(message(func(key string) string { return "sglang-hicache:" + key[:40] }))
	}
	if !e.Starts() {
		t.Error("no start is told")
	}
	if size := len(e.AppendTo(nil, c.enc)); size > 36*n {
		t.Errorf("%d messages take %d bytes; 32 of each are the digits of the key", n, size)
	}
	if e.Reset(); e.Starts() {
		t.Error("a start is left over")
	}
}
