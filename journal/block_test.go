package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

func testCodec(t testing.TB) *codec {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// anyInt prefers the edges.
func anyInt(rng *rand.Rand) uint64 {
	switch rng.IntN(5) {
	case 0:
		return 0
	case 1:
		return math.MaxUint64 - uint64(rng.IntN(2))
	case 2:
		return 1<<63 - 1 + uint64(rng.IntN(3))
	case 3:
		return uint64(rng.IntN(300))
	}
	return rng.Uint64()
}

// anyRecord is one of any shape that the format must hold, likely or not.
func anyRecord(rng *rand.Rand) rec {
	on := func() bool { return rng.IntN(2) == 0 }
	h := Header{
		Kind: Kind(1 + rng.IntN(6)), Source: uint32(anyInt(rng)), Received: int64(anyInt(rng)),
		HasSeq: on(), Seq: anyInt(rng), Events: uint32(anyInt(rng)),
		Verdict: continuity.Verdict{
			Epoch: anyInt(rng), HasTime: on(), Time: int64(anyInt(rng)),
			Duplicate: on(), Follows: on(), InWindow: on(), Keyed: on(),
		},
	}
	if rng.IntN(4) == 0 {
		h.Damage = event.Cause(1 + rng.IntN(13))
	}
	if rng.IntN(4) == 0 {
		h.Mark, h.MarkCause = continuity.MarkPlace(1+rng.IntN(2)), continuity.Cause(rng.IntN(13))
	}
	if rng.IntN(4) == 0 {
		h.Gap = continuity.Gap{
			Cause: continuity.Cause(1 + rng.IntN(12)), Epoch: anyInt(rng), First: anyInt(rng), Last: anyInt(rng),
			Lost: continuity.Lost(rng.IntN(3)), Min: anyInt(rng), Max: anyInt(rng),
		}
	}
	frame := func() []byte {
		b := make([]byte, []int{0, 1, 7, 8, 9, 60, 200}[rng.IntN(7)])
		for i := range b {
			b[i] = byte(rng.IntN(1 + rng.IntN(256)))
		}
		return b
	}
	r := rec{header: h}
	switch rng.IntN(3) {
	case 0: // the usual shape
		r.header.Kind, r.header.HasSeq = Message, true
		r.frames = [][]byte{{}, binary.BigEndian.AppendUint64(nil, h.Seq), frame()}
	case 1: // hardly unusual
		r.header.Kind, r.header.HasSeq = Message, true
		seq := binary.BigEndian.AppendUint64(nil, h.Seq)
		shapes := [][][]byte{{{0}, seq, frame()}, {{}, seq[:7], frame()}, {{}, seq, frame(), {}}, {{}, seq}, {{}, append(seq, 0), frame()},
			{{}, binary.BigEndian.AppendUint64(nil, h.Seq+1), frame()}}
		r.frames = shapes[rng.IntN(len(shapes))]
	default:
		for range []int{0, 1, 2, 3, 5}[rng.IntN(5)] {
			r.frames = append(r.frames, frame())
		}
	}
	return r
}

func buildBlock(c *codec, first uint64, recs []rec) []byte {
	var b builder
	b.reset(first)
	for i := range recs {
		b.add(&recs[i].header, recs[i].frames)
	}
	return b.appendBlock(nil, c)
}

func blockRecords(b *Block) ([]rec, error) {
	var out []rec
	for i := range b.Len() {
		r := rec{offset: b.First + uint64(i), header: *b.Header(i)}
		frames, err := b.Frames(i, nil, new([8]byte))
		if err != nil {
			return nil, err
		}
		for _, f := range frames {
			r.frames = append(r.frames, bytes.Clone(f))
		}
		out = append(out, r)
	}
	return out, nil
}

func TestBlockRoundTrip(t *testing.T) {
	rng, c := testkit.RandomSource(t), testCodec(t)
	reused := &Block{}
	for range 20 + questions(400) {
		first := 1 + rng.Uint64N(1<<40)
		recs := make([]rec, 1+rng.IntN(1+rng.IntN(120)))
		raw := 0
		for i := range recs {
			recs[i] = anyRecord(rng)
			recs[i].offset = first + uint64(i)
			for _, f := range recs[i].frames {
				raw += len(f)
			}
		}
		stored := buildBlock(c, first, recs)
		for _, b := range []*Block{{}, reused} {
			if err := b.decode(first, stored, c); err != nil {
				t.Fatal(err)
			}
			got, err := blockRecords(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := diffRecords(got, recs); err != nil {
				t.Fatal(err)
			}
			if b.Last() != first+uint64(len(recs))-1 || b.RawLen() > raw {
				t.Fatalf("Last %d, RawLen %d of %d", b.Last(), b.RawLen(), raw)
			}
		}
	}
}

// TestBlockOfOneLargeMessage: one message may be larger than a block.
func TestBlockOfOneLargeMessage(t *testing.T) {
	rng, c := testkit.RandomSource(t), testCodec(t)
	for name, fill := range map[string]func([]byte){
		"compressible":   func(b []byte) { copy(b[len(b)/2:], "x") },
		"incompressible": func(b []byte) { rand.NewChaCha8([32]byte{byte(rng.Uint32())}).Read(b) },
	} {
		t.Run(name, func(t *testing.T) {
			payload := make([]byte, 9<<20+17)
			fill(payload)
			r := rec{offset: 5, header: Header{Kind: Message, HasSeq: true, Seq: 3}, frames: [][]byte{{}, {0, 0, 0, 0, 0, 0, 0, 3}, payload}}
			b := &Block{}
			if err := b.decode(5, buildBlock(c, 5, []rec{r}), c); err != nil {
				t.Fatal(err)
			}
			got, err := blockRecords(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := diffRecords(got, []rec{r}); err != nil {
				t.Fatal("differs")
			}
		})
	}
}

// mustBeCorrupt decodes all of a damaged block, down to the frames, and wants a *CorruptError that names the place.
func mustBeCorrupt(t *testing.T, first uint64, stored []byte, c *codec, what string, at int) {
	t.Helper()
	b := &Block{}
	err := b.decode(first, stored, c)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset != first {
		t.Fatalf("%s at %d: error %v, want a *CorruptError of offset %d", what, at, err, first)
	}
}

func TestBlockDamageIsFound(t *testing.T) {
	rng, c := testkit.RandomSource(t), testCodec(t)
	for range 6 {
		recs := make([]rec, 1+rng.IntN(30))
		for i := range recs {
			recs[i] = anyRecord(rng)
		}
		stored := buildBlock(c, 77, recs)
		for i := range stored {
			damaged := bytes.Clone(stored)
			damaged[i] ^= byte(1 + rng.IntN(255))
			mustBeCorrupt(t, 77, damaged, c, "flip", i)
			mustBeCorrupt(t, 77, stored[:i], c, "cut", i)
		}
		mustBeCorrupt(t, 77, append(bytes.Clone(stored), 0), c, "a byte more", len(stored))
		mustBeCorrupt(t, 76, stored, c, "another key", 0)
	}
}

// TestBlockDamageBehindTheChecksum: a block whose checksum was made to fit must not make the reader panic either, nor
// return records that are not there.
func TestBlockDamageBehindTheChecksum(t *testing.T) {
	rng, c := testkit.RandomSource(t), testCodec(t)
	for range 1 + questions(25) {
		recs := make([]rec, 1+rng.IntN(20))
		for i := range recs {
			recs[i] = anyRecord(rng)
		}
		stored := buildBlock(c, 1, recs)
		for i := range len(stored) - 4 {
			damaged := bytes.Clone(stored)
			damaged[i] ^= 1 << rng.IntN(8)
			readRechecksummed(t, damaged[:len(damaged)-4], c)
			readRechecksummed(t, stored[:i], c)
		}
	}
}

// readRechecksummed reads body as a block with a fitting checksum; any result but a panic will do.
func readRechecksummed(t testing.TB, body []byte, c *codec) {
	stored := binary.LittleEndian.AppendUint32(bytes.Clone(body), blockChecksum(1, body))
	b := &Block{}
	if err := b.decode(1, stored, c); err != nil {
		return
	}
	recs, err := blockRecords(b)
	if err != nil {
		return
	}
	size := 0
	for _, r := range recs {
		for _, f := range r.frames {
			size += len(f)
		}
	}
	if size > b.RawLen()+8*len(recs) { // the seq frame is not stored
		t.Fatalf("%d bytes of frames from %d", size, b.RawLen())
	}
}

// TestBlockTellsOfStarts: a program that does not know how a group_id comes from the start of a key must refuse the block, as newer.
func TestBlockTellsOfStarts(t *testing.T) {
	c := mustCodec(t)
	key := strings.Repeat("0123456789abcdef", 4) + "_0_k"
	for group, flag := range map[string]byte{"a group of its own": 0, "g:" + key: 0, "g:" + key[:40]: blockStarts} {
		enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
		f := event.Fields{Type: event.Stored, ID: 1, Tenant: "t", Backend: "b", Medium: "cpu", Key: key, GroupID: &group}
		seq := event.SeqFrame(1)
		h := Header{Kind: Message, Source: 1, HasSeq: true, Seq: 1, Events: 1}
		want := rec{offset: 1, header: h, frames: [][]byte{{}, seq[:], enc.AppendPayload(nil, 1, []event.Fields{f}, 0)}}
		stored := buildBlock(c, 1, []rec{want})
		if got := stored[1] & blockStarts; got != flag {
			t.Errorf("group %q: flag %#x, want %#x", group, got, flag)
		}
		var b Block
		if err := b.decode(1, stored, c); err != nil {
			t.Fatal(err)
		}
		got, err := blockRecords(&b)
		if err == nil {
			err = diffRecords(got, []rec{want})
		}
		if err != nil {
			t.Errorf("group %q: %v", group, err)
		}
	}
}
