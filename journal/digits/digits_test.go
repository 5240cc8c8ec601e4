package digits

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

// naive packs by the library.
func naive(s []byte) []byte {
	n := 0
	for n < len(s) && strings.IndexByte(text, s[n]) >= 0 {
		n++
	}
	out, _ := hex.DecodeString(string(s[:n&^1]))
	return out
}

func check(t *testing.T, s []byte) {
	t.Helper()
	got, want := AppendPacked([]byte("before"), s), naive(s)
	if string(got) != "before"+string(want) {
		t.Fatalf("%q is packed as %x, want %x", s, got, want)
	}
	if back := AppendText([]byte("before"), want); string(back) != "before"+string(s[:2*len(want)]) {
		t.Fatalf("%q came back as %q", s, back)
	}
}

// TestEveryByte puts each byte at each place among digits.
func TestEveryByte(t *testing.T) {
	for c := range 256 {
		if Is(byte(c)) != (strings.IndexByte(text, byte(c)) >= 0) {
			t.Errorf("Is(%q) is wrong", byte(c))
		}
		for _, around := range []string{"00000000000", "fffffffffff", "9a9a9a9a9a9", "a9f0a9f0a9f"} {
			for at := range around {
				s := []byte(around)
				s[at] = byte(c)
				check(t, s)
			}
		}
	}
}

func TestLengths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 80 {
		for range 50 {
			s := make([]byte, n)
			for i := range s {
				s[i] = text[rng.IntN(16)]
			}
			check(t, s)
			if n > 0 {
				s[rng.IntN(n)] = byte(rng.Uint32())
				check(t, s)
			}
		}
	}
}

func FuzzDigits(f *testing.F) {
	f.Add([]byte("0123456789abcdef0_k"))
	f.Fuzz(func(t *testing.T, s []byte) {
		check(t, s)
		if back := AppendPacked(nil, AppendText(nil, s)); !bytes.Equal(back, s) {
			t.Fatalf("%x came back as %x", s, back)
		}
	})
}

func BenchmarkPack(b *testing.B) {
	s, out := bytes.Repeat([]byte("0123456789abcdef"), 4), make([]byte, 0, 64)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		out = AppendPacked(out[:0], s)
	}
}

func BenchmarkUnpack(b *testing.B) {
	s, out := bytes.Repeat([]byte{0x12, 0xaf}, 16), make([]byte, 0, 64)
	b.SetBytes(2 * int64(len(s)))
	for b.Loop() {
		out = AppendText(out[:0], s)
	}
}
