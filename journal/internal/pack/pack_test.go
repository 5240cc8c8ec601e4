package pack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

type codec struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCodec(tb testing.TB) codec {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { enc.Close(); dec.Close() })
	return codec{enc, dec}
}

// packed is a block of messages, and how many bytes they have together.
func (c codec) packed(messages [][]byte) (packed []byte, size int) {
	var e Encoder
	for _, m := range messages {
		e.Add(m)
		size += len(m)
	}
	return e.AppendTo(nil, c.enc), size
}

// roundTrip packs and unpacks messages, and returns the packed size.
func (c codec) roundTrip(t *testing.T, messages [][]byte) int {
	t.Helper()
	packed, _ := c.packed(messages)
	want := bytes.Join(messages, nil)
	got, err := Unpack([]byte("before"), packed, len(want), c.dec)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, append([]byte("before"), want...)) {
		t.Fatalf("%d messages came back changed", len(messages))
	}
	var key []byte
	m, err := Open(packed, len(want), c.dec)
	if err != nil {
		t.Fatal(err)
	}
	clear(packed) // nothing of it is kept
	for i := len(messages) - 1; i >= 0; i -= 1 + len(messages)/500 {
		got, err := m.Append([]byte("before"), i, len(messages[i]), &key)
		if err != nil || string(got) != "before"+string(messages[i]) {
			t.Fatalf("message %d of %d alone came back changed: %v", i, len(messages), err)
		}
	}
	if _, err := m.Append(nil, len(messages), 0, &key); err != ErrPacked {
		t.Fatalf("a message behind the last: %v", err)
	}
	return len(packed)
}

// traffic makes messages as a publisher sends them.
func traffic(n, events int) [][]byte {
	source := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Tenants: 3, Objects: 1000, ClearEvery: 500}, events, 1_795_985_000_000)
	out := make([][]byte, n)
	for i := range out {
		frames, _ := source.Next()
		out[i] = bytes.Clone(frames[2])
	}
	return out
}

func TestTraffic(t *testing.T) {
	c := newCodec(t)
	for _, events := range []int{1, 3, 64} {
		messages := traffic(4000/events, events)
		size := c.roundTrip(t, messages)
		if perEvent := float64(size) / 4000; perEvent > 45 {
			t.Errorf("%d events a message: %.1f B an event; 32 of them are a key's hex digits", events, perEvent)
		}
	}
}

// TestForms packs events of every form that the format names, and values that have no hole.
func TestForms(t *testing.T) {
	c := newCodec(t)
	text := func(s string) *string { return &s }
	hex := strings.Repeat("0123456789abcdef", 4)
	keys := []string{"", "k", hex, hex + "_0_k", "a" + hex, hex[:15], hex[:16], hex[:17], "x" + hex[:31] + "-" + hex[:33], strings.ToUpper(hex),
		"\xff\xfe", "a\x00b", strings.Repeat("L", 3000) + hex, strings.Repeat("7", 70_000)}
	groups := []*string{nil, text(""), text("g"), text("sglang-hicache:"), text(strings.Repeat("p", 300))}
	for _, legacy := range []bool{false, true} {
		enc := event.NewEncoder(event.EncodeOptions{LegacyCompat: legacy, ObjectKey: true})
		var messages [][]byte
		id := uint64(0)
		for _, key := range keys {
			for g, group := range groups {
				if group != nil && g > 1 {
					group = text(*group + key)
				}
				for _, kind := range []event.Type{event.Stored, event.Removed, event.Cleared} {
					id += uint64(1 + g*g*100)
					f := event.Fields{Type: kind, ID: id, Timestamp: int64(id) * 7, ModelName: text("m"), GroupID: group, BlockSize: 64, Tenant: "t", Backend: "b", Medium: "cpu", Key: key}
					messages = append(messages, enc.AppendPayload(nil, int64(id), []event.Fields{f, f}, uint32(g)))
				}
			}
		}
		c.roundTrip(t, messages)
	}
}

// TestAnything packs messages that were damaged at random, and bytes that never were messages.
func TestAnything(t *testing.T) {
	c := newCodec(t)
	good := traffic(60, 5)
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var messages [][]byte
		for range 1 + rng.IntN(30) {
			m := bytes.Clone(good[rng.IntN(len(good))])
			switch rng.IntN(4) {
			case 0:
				for range 1 + rng.IntN(4) {
					m[rng.IntN(len(m))] = byte(rng.Uint32())
				}
			case 1:
				m = m[:rng.IntN(len(m)+1)]
			case 2:
				m = append(m, good[0][:rng.IntN(len(good[0]))]...)
			}
			messages = append(messages, m)
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { c.roundTrip(t, messages) })
	}
}

// TestManyShapes packs more kinds of events than a block defines.
func TestManyShapes(t *testing.T) {
	c := newCodec(t)
	enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
	var messages [][]byte
	for i := range 3 * maxShapes {
		f := event.Fields{Type: event.Stored, ID: uint64(i + 1), Tenant: fmt.Sprint("tenant-", i), Backend: "b", Medium: "cpu", Key: "k"}
		messages = append(messages, enc.AppendPayload(nil, 1, []event.Fields{f}, uint32(i)))
	}
	c.roundTrip(t, messages)
}

// TestDamage flips every bit and cuts at every byte: an error or other bytes of the right number, never a panic.
func TestDamage(t *testing.T) {
	c := newCodec(t)
	packed, size := c.packed(append(traffic(4, 3), []byte("raw")))
	check := func(b []byte) { checkDamaged(t, c, b, size) }
	for i := range packed {
		check(packed[:i])
		for bit := range 8 {
			b := bytes.Clone(packed)
			b[i] ^= 1 << bit
			check(b)
		}
	}
	if _, err := Unpack(nil, packed, size-1, c.dec); err == nil {
		t.Error("unpacked into fewer bytes than there are")
	}
}

// checkDamaged unpacks what may be no block: it gives an error, or as many bytes as were asked for, whole or message by message.
func checkDamaged(t *testing.T, c codec, packed []byte, size int) {
	t.Helper()
	if got, err := Unpack(nil, packed, size, c.dec); err == nil && len(got) != size {
		t.Fatalf("%d bytes unpacked, %d expected", len(got), size)
	}
	m, err := Open(packed, size, c.dec)
	if err != nil {
		return
	}
	for i := range min(m.count, 100) {
		for _, length := range []int{0, 5, size} {
			if got, err := m.Append(nil, i, length, new([]byte)); err == nil && len(got) != length {
				t.Fatalf("message %d has %d bytes, %d expected", i, len(got), length)
			}
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, m := range traffic(3, 2) {
		f.Add(m)
	}
	f.Add([]byte{})
	c := newCodec(f)
	f.Fuzz(func(t *testing.T, m []byte) { c.roundTrip(t, [][]byte{m, m[:len(m)/2], m}) })
}

func FuzzUnpack(f *testing.F) {
	c := newCodec(f)
	packed, _ := c.packed(traffic(3, 2))
	f.Add(packed, 2000)
	f.Fuzz(func(t *testing.T, packed []byte, size int) {
		size = int(uint(size) % (1 << 20))
		checkDamaged(t, c, packed, size)
	})
}

// BenchmarkPack packs 256 KiB of messages; BenchmarkUnpack unpacks them.
func BenchmarkPack(b *testing.B) {
	c, messages := newCodec(b), traffic(11, 64)
	var e Encoder
	var packed []byte
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		e.Reset()
		for _, m := range messages {
			e.Add(m)
		}
		packed = e.AppendTo(packed[:0], c.enc)
	}
	b.ReportMetric(float64(len(packed))/float64(11*64), "B/event")
}

func BenchmarkUnpack(b *testing.B) {
	c, messages := newCodec(b), traffic(11, 64)
	packed, size := c.packed(messages)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var out []byte
	var err error
	for b.Loop() {
		if out, err = Unpack(out[:0], packed, size, c.dec); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens 256 KiB of messages; BenchmarkMessage reads any one of them.
func BenchmarkOpen(b *testing.B)    { benchmarkOne(b, true) }
func BenchmarkMessage(b *testing.B) { benchmarkOne(b, false) }

func benchmarkOne(b *testing.B, open bool) {
	c := newCodec(b)
	for _, events := range []int{1, 64} {
		messages := traffic(700/events, events)
		packed, size := c.packed(messages)
		m, err := Open(packed, size, c.dec)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("events=%d", events), func(b *testing.B) {
			b.ReportAllocs()
			var out, key []byte
			for i := 0; b.Loop(); i++ {
				if open {
					m, err = Open(packed, size, c.dec)
				} else {
					i := i * 7 % len(messages)
					out, err = m.Append(out[:0], i, len(messages[i]), &key)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(m.Size())/700, "kept-B/event")
		})
	}
}

// BenchmarkZstd is what packing is held against: the same bytes as one zstd frame.
func BenchmarkZstd(b *testing.B) {
	c, raw := newCodec(b), bytes.Join(traffic(11, 64), nil)
	var out []byte
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		out = c.enc.EncodeAll(raw, out[:0])
	}
	b.ReportMetric(float64(len(out))/float64(11*64), "B/event")
}
