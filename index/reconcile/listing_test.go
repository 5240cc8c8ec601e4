package reconcile

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/reading"
)

func TestListing(t *testing.T) {
	seed := seedOf(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	l := &Listing{}
	all := map[string]word{}
	added := 0
	for range 3000 {
		key := make([]byte, rng.IntN(12))
		for i := range key {
			key[i] = "ab\x00\xff"[rng.IntN(4)]
		}
		if rng.IntN(500) == 0 {
			key = bytes.Repeat([]byte("long"), pieceBytes/4+rng.IntN(3))
		}
		if _, twice := all[string(key)]; !twice {
			all[string(key)] = word(rng.IntN(256))
		}
		l.Add(key, all[string(key)])
		added++
	}
	if twice := l.Sort(); twice != added-len(all) || l.Len() != len(all) {
		t.Fatalf("%d twice, %d keys; want %d, %d", twice, l.Len(), added-len(all), len(all))
	}
	for i := range l.Len() {
		if i > 0 && bytes.Compare(l.Key(i-1), l.Key(i)) >= 0 {
			t.Fatal("not sorted")
		}
		if w, ok := all[string(l.Key(i))]; !ok || w != l.note(i) {
			t.Fatalf("key %q has the notes %b, want %b", l.Key(i), l.note(i), w)
		}
	}
	keys := []string{"", "a", "b", "zz"}
	for k := range all {
		keys = append(keys, k, k+"x")
	}
	slices.Sort(keys)
	c := cursor{l: l}
	for _, k := range slices.Compact(keys) {
		_, want := all[k]
		if i, ok := c.find([]byte(k)); ok != want || ok && string(l.Key(i)) != k {
			t.Fatalf("find %q: %v, want %v", k, ok, want)
		}
	}
}

// Each combination of what is known, what the master says and what an earlier reading said: never a correction of what is confirmed
// on one word alone, and, where the row speaks of an object, nothing that it says wrongly.
func TestWeigh(t *testing.T) {
	for k := word(0); k < 32; k++ {
		for w := word(0); w < 4; w++ {
			for b := word(0); b < 5; b++ {
				var before *word
				if b < 4 {
					before = &b
				}
				said := map[string]reading.What{}
				e := weigh(k, w, nil, before, false, func(what reading.What, medium []byte) { said[string(medium)] = what })
				_, excepted := said[""]
				if excepted != e.excepted {
					t.Fatalf("%05b %02b: excepted %v, %v", k, w, e.excepted, said)
				}
				for _, m := range each {
					entry, corrected := said[string(m.name)]
					differs := (k^w)&m.present != 0
					sure := k&m.sure != 0
					twice := before != nil && (*before^w)&m.present == 0
					switch {
					case corrected && (entry == reading.Present) != (w&m.present != 0):
						t.Fatalf("%05b %02b: %s is corrected to %d", k, w, m.name, entry)
					case corrected && sure && !(differs && twice):
						t.Fatalf("%05b %02b: %s is confirmed, and corrected", k, w, m.name)
					case !corrected && !excepted && differs:
						t.Fatalf("%05b %02b: the row says what the master does not, of %s", k, w, m.name)
					case !corrected && !sure:
						if differs || excepted {
							t.Fatalf("%05b %02b: nothing says what %s is", k, w, m.name)
						}
					}
				}
			}
		}
	}
}

func TestSaid(t *testing.T) {
	for state := mooncake.Unknown; state <= mooncake.Skipped; state++ {
		w, ok := said(mooncake.Answer{State: state})
		if ok != (state == mooncake.NotReady) || w != gone {
			t.Errorf("%v with nothing set says %b, %v", state, w, ok)
		}
	}
	if w, ok := said(mooncake.Answer{State: mooncake.Readable, Disk: true}); !ok || w != onDisk {
		t.Error("disk")
	}
}

// A million keys of 82 bytes, half of them known, all in doubt: listed, sorted, joined, asked, and left as corrections.
func BenchmarkPlan(b *testing.B) {
	const n = 1_000_000
	rng := rand.New(rand.NewPCG(1, 1))
	keys := make([]byte, 0, n*82)
	raw := make([]byte, 32)
	for range n {
		for i := range raw {
			raw[i] = byte(rng.Uint32())
		}
		keys = hex.AppendEncode(keys, raw)
		keys = fmt.Appendf(keys, "@tp_rank:%d@pp_rank", rng.IntN(10)) // 82 bytes
	}
	key := func(i int) []byte { return keys[i*82 : i*82+82] }
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, c int) int { return bytes.Compare(key(a), key(c)) })
	media := []Medium{{Name: cpu, Present: true}, {Name: disk}}
	b.ReportAllocs()
	for b.Loop() {
		var before, listed, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		begun := time.Now()
		p := &plan{list: &Listing{}, parts: newParts(1, reading.Scope{Backend: []byte("b")}), found: newCandidates(), lines: true}
		for i := range n {
			p.list.Add(key(i), 0)
		}
		p.list.Sort()
		sorted := time.Since(begun)
		runtime.GC()
		runtime.ReadMemStats(&listed)
		begun = time.Now()
		p.begin()
		for i := 0; i < n; i += 2 {
			if err := p.object(&Object{Key: key(order[i]), Media: media}); err != nil {
				b.Fatal(err)
			}
		}
		p.end()
		joined := time.Since(begun)
		begun = time.Now()
		for i := range p.list.Len() {
			if p.list.note(i)&ask != 0 {
				p.answer(i, mooncake.Answer{State: mooncake.Readable, Disk: true})
			}
		}
		answered := time.Since(begun)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(listed.HeapAlloc-before.HeapAlloc)/1e6, "listing-MB")
		b.ReportMetric(float64(after.HeapAlloc-listed.HeapAlloc)/1e6, "parts-MB")
		b.ReportMetric(sorted.Seconds(), "list+sort-s")
		b.ReportMetric(joined.Seconds(), "join-s")
		b.ReportMetric(answered.Seconds(), "answers-s")
		if listed.HeapAlloc-before.HeapAlloc > 150e6 {
			b.Fatal("a listing of 1,000,000 keys takes more than 150 MB")
		}
		runtime.KeepAlive(p)
	}
}
