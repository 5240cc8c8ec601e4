package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// keyPlace is what a history key stands for.
type keyPlace struct {
	source               uint32
	backend, tenant, key []byte
	medium               string
	at                   Position
}

func (p *keyPlace) prefix() []byte {
	return appendObject(appendScope([]byte{keyHistory}, p.source, p.backend, p.tenant), p.key)
}

func (p *keyPlace) history() []byte {
	return appendPosition(appendMedium(p.prefix(), []byte(p.medium)), p.at)
}

// compare is the order that keys must have: cpu, disk, then the other media; the newest position first.
func (p *keyPlace) compare(q *keyPlace) int {
	rank := func(m string) int {
		switch m {
		case "cpu":
			return 0
		case "disk":
			return 1
		}
		return 2
	}
	packed := func(k []byte) int { // keys that begin with a hash come behind the others
		if regexp.MustCompile(`^[0-9a-f]{64}`).Match(k) {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(p.source, q.source), bytes.Compare(p.backend, q.backend), bytes.Compare(p.tenant, q.tenant),
		cmp.Compare(packed(p.key), packed(q.key)), bytes.Compare(p.key, q.key), cmp.Compare(rank(p.medium), rank(q.medium)), cmp.Compare(p.medium, q.medium), q.at.Compare(p.at))
}

// randomText is short, of bytes that are treated apart, so that texts are often prefixes of each other.
func randomText(rng *rand.Rand) []byte {
	b := make([]byte, rng.IntN(5))
	for i := range b {
		b[i] = []byte{0, 0, 1, 2, 0xfe, 0xff, 0xff, 'a', byte(rng.IntN(256))}[rng.IntN(9)]
	}
	return b
}

// randomNumber lies near where the encoding of numbers changes its length.
func randomNumber(rng *rand.Rand, bits int) uint64 {
	v := uint64(1) << rng.IntN(bits)
	if rng.IntN(4) == 0 {
		v = oneByteMax
	}
	v += uint64(rng.IntN(4)) - 2
	if bits == 32 {
		v = uint64(uint32(v))
	}
	return v
}

// randomKey is a text, or a hash, or nearly one.
func randomKey(rng *rand.Rand) []byte {
	if rng.IntN(2) == 0 {
		return randomText(rng)
	}
	hash := bytes.Repeat([]byte{'0'}, 62+rng.IntN(4))
	for range rng.IntN(3) {
		hash[rng.IntN(len(hash))] = "19af/:g`A\x00\xff"[rng.IntN(11)]
	}
	return append(hash, randomText(rng)...)
}

func randomPlace(rng *rand.Rand) keyPlace {
	return keyPlace{
		source: []uint32{0, 1, 2, 255, 256, math.MaxUint32}[rng.IntN(6)], backend: randomText(rng), tenant: randomText(rng), key: randomKey(rng),
		medium: []string{"cpu", "disk", "cpu2", "cp", "dis", "gpu", "\x00", "\x00\x01", "gpu\x00"}[rng.IntN(9)],
		at:     Position{randomNumber(rng, 64), uint32(randomNumber(rng, 32))},
	}
}

// TestKeyOrder: the order of keys is that of what they stand for, and they read back.
func TestKeyOrder(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	places := make([]keyPlace, 0, 2000)
	for range 1000 {
		p := randomPlace(rng)
		q := randomPlace(rng)
		if rng.IntN(2) == 0 { // differ in the last parts alone
			q.source, q.backend, q.tenant, q.key = p.source, p.backend, p.tenant, p.key
		}
		if rng.IntN(4) == 0 {
			q.medium = p.medium
		}
		places = append(places, p, q)
	}
	c := comparer()
	for range 10_000 {
		p, q := &places[rng.IntN(len(places))], &places[rng.IntN(len(places))]
		a, b := p.history(), q.history()
		if got, want := c.Compare(a, b), p.compare(q); got != want {
			t.Fatalf("seed %d: %+v and %+v: keys %x and %x compare %d, want %d", seed, p, q, a, b, got, want)
		}
	}
	for i := range places {
		p := &places[i]
		k := p.history()
		if n := split(k); n != len(p.prefix()) {
			t.Fatalf("%+v: split at %d, want %d", p, n, len(p.prefix()))
		}
		backend, rest, ok1 := cutText(k[5:])
		tenant, rest, ok2 := cutText(rest)
		key, rest, ok3 := cutObject(rest)
		medium, rest, ok4 := cutMedium(rest)
		at, ok5 := cutPosition(rest)
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || binary.BigEndian.Uint32(k[1:]) != p.source ||
			!bytes.Equal(backend, p.backend) || !bytes.Equal(tenant, p.tenant) || !bytes.Equal(key, p.key) || medium != p.medium || at != p.at {
			t.Fatalf("%+v came back as %q %q %q %q %v", p, backend, tenant, key, medium, at)
		}
		if n := scopeLength(k); n != len(appendScope([]byte{keyHistory}, p.source, p.backend, p.tenant)) {
			t.Fatalf("%+v: scopeLength %d", p, n)
		}
	}
}

func TestDescending(t *testing.T) {
	var numbers []uint64
	for bit := range 64 {
		for d := range uint64(5) {
			numbers = append(numbers, 1<<bit+d-2)
		}
	}
	numbers = append(numbers, 0, 1, oneByteMax-1, oneByteMax, oneByteMax+1, math.MaxUint64-1, math.MaxUint64)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var before []byte
	for i, v := range numbers {
		b := appendDescending(nil, v)
		got, rest, ok := cutDescending(append(b, 0x77))
		if !ok || got != v || len(rest) != 1 {
			t.Errorf("%d came back as %d, %x, %v", v, got, rest, ok)
		}
		for cut := range b {
			if _, _, ok := cutDescending(b[:cut]); ok {
				t.Errorf("%d cut to %d bytes was read", v, cut)
			}
		}
		if i > 0 && bytes.Compare(b, before) >= 0 {
			t.Errorf("%d: %x does not stand before %x", v, b, before)
		}
		before = b
	}
}

// TestComparer holds what Pebble's CheckComparer holds, for complete keys. (CheckComparer itself takes prefixes apart byte
// by byte; a key without its first byte is no key of the index.)
func TestComparer(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var keys [][]byte
	prefixLength := map[string]int{}
	add := func(prefix, suffix []byte) {
		k := slices.Concat(prefix, suffix)
		keys = append(keys, k)
		prefixLength[string(k)] = len(prefix)
	}
	for range 40 {
		p := randomPlace(rng)
		history, scope := p.prefix(), appendScope([]byte{keyClear}, p.source, p.backend, p.tenant)
		at := appendPosition(nil, p.at)
		add(history, nil)
		add(history, appendMedium(nil, []byte(p.medium)))
		add(history, slices.Concat(appendMedium(nil, []byte(p.medium)), at))
		history[0] = keyLive
		add(history, appendMedium(nil, []byte(p.medium)))
		add(scope, nil)
		add(scope, at)
		scope[0] = keyProof
		add(scope, at)
		scope[0] = keyScope
		add(scope, nil)
		add(markKey(p.source, p.at.Offset), nil)
		add(gapKey(p.source, p.at.Offset, 1), nil)
		add(sourceKey(keyState, p.source), nil)
	}
	add([]byte{keyApplied}, nil)
	add([]byte{keyJournal}, nil)

	c := comparer()
	if err := checkFields(c); err != nil {
		t.Error(err)
	}
	for _, a := range keys {
		n := c.Split(a)
		if n != prefixLength[string(a)] {
			t.Fatalf("%x is split at %d, want %d", a, n, prefixLength[string(a)])
		}
		if c.Split(a[:n]) != n {
			t.Fatalf("the prefix of %x is no prefix of its own", a)
		}
		for _, b := range keys {
			m := c.Split(b)
			result := c.Compare(a, b)
			if (result == 0) != c.Equal(a, b) {
				t.Fatalf("Equal(%x, %x) does not agree with Compare", a, b)
			}
			want := bytes.Compare(a[:n], b[:m])
			if want == 0 {
				want = c.ComparePointSuffixes(a[n:], b[m:])
				if want != c.CompareRangeSuffixes(a[n:], b[m:]) {
					t.Fatalf("suffixes of %x and %x", a, b)
				}
			}
			if result != want {
				t.Fatalf("Compare(%x, %x) = %d, prefixes and suffixes say %d", a, b, result, want)
			}
			if result < 0 {
				if s := c.Separator(nil, a, b); c.Compare(a, s) > 0 || c.Compare(s, b) >= 0 {
					t.Fatalf("Separator(%x, %x) = %x", a, b, s)
				}
			}
		}
		if s := c.Successor(nil, a); c.Compare(s, a) < 0 {
			t.Fatalf("Successor(%x) = %x", a, s)
		}
		prefix := a[:n]
		next := c.ImmediateSuccessor(nil, prefix)
		if c.Split(next) != len(next) || c.Compare(next, prefix) <= 0 {
			t.Fatalf("ImmediateSuccessor(%x) = %x", prefix, next)
		}
		for _, b := range keys {
			m := c.Split(b)
			if bytes.Equal(b[:m], prefix) && c.Compare(b, next) >= 0 || bytes.Compare(b[:m], prefix) > 0 && c.Compare(b[:m], next) < 0 {
				t.Fatalf("ImmediateSuccessor(%x) = %x, but there is %x", prefix, next, b)
			}
		}
	}
	// As far as it goes.
	if err := pebble.CheckComparer(c, [][]byte{{keyApplied}, {keyJournal}, {'z'}}, nil); err != nil {
		t.Error(err)
	}
}

func checkFields(c *pebble.Comparer) error {
	if c.Compare == nil || c.Equal == nil || c.AbbreviatedKey == nil || c.Separator == nil || c.Successor == nil || c.ImmediateSuccessor == nil ||
		c.Split == nil || c.ComparePointSuffixes == nil || c.CompareRangeSuffixes == nil || c.FormatKey == nil || c.Name == "" {
		return fmt.Errorf("a field of the comparer is not set: %+v", c)
	}
	return nil
}

// FuzzKey: whatever the bytes are, nothing panics, and a key that reads back whole is written the same.
func FuzzKey(f *testing.F) {
	p := randomPlace(rand.New(rand.NewPCG(1, 1)))
	f.Add(p.history())
	f.Add(markKey(1, 2))
	f.Add(appendPosition(appendScope([]byte{keyClear}, 1, []byte("b\x00"), nil), Position{300, 1}))
	f.Add([]byte{keyHistory, 0, 0, 0, 1, 0, 5, 0})
	f.Fuzz(func(t *testing.T, k []byte) {
		n := split(k)
		if n < 0 || n > len(k) || split(k[:n]) != n {
			t.Fatalf("split(%x) = %d, of the prefix %d", k, n, split(k[:n]))
		}
		if len(k) < 5 || k[0] != keyHistory {
			return
		}
		if e := scopeLength(k); e > n {
			t.Fatalf("%x: the scope ends at %d, the object at %d", k, e, n)
		}
		backend, rest, ok1 := cutText(k[5:])
		tenant, rest, ok2 := cutText(rest)
		key, rest, ok3 := cutObject(rest)
		medium, rest, ok4 := cutMedium(rest)
		at, ok5 := cutPosition(rest)
		if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
			return
		}
		p := keyPlace{binary.BigEndian.Uint32(k[1:]), backend, tenant, key, medium, at}
		again := p.history()
		q := keyPlace{source: p.source}
		var oks [5]bool
		q.backend, rest, oks[0] = cutText(again[5:])
		q.tenant, rest, oks[1] = cutText(rest)
		q.key, rest, oks[2] = cutObject(rest)
		q.medium, rest, oks[3] = cutMedium(rest)
		q.at, oks[4] = cutPosition(rest)
		if slices.Contains(oks[:], false) || p.compare(&q) != 0 {
			t.Fatalf("%x was read as %+v, written as %x and read as %+v", k, p, again, q)
		}
	})
}

// cutObject reads an object's key back and returns what follows it.
func cutObject(b []byte) (key, rest []byte, ok bool) {
	n := objectEnd(b)
	if n < 0 || b[0] != objectPlain && b[0] != objectPacked {
		return nil, nil, false
	}
	return appendObjectKey(nil, b[:n]), b[n:], true
}
