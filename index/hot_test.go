package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// anyObject is one of the few that streams are about, or one that never was.
func anyObject(rng *rand.Rand) *Object {
	o := &Object{Source: 1, Backend: []byte(pick(rng, testBackends)), Tenant: []byte(pick(rng, testTenants)), Key: []byte(pick(rng, testKeys))}
	if rng.IntN(20) == 0 {
		o.Key = append(o.Key, "never"...)
	}
	return o
}

// askTwice asks for an object at a position, and then reads its rows in the same view.
func askTwice(v *View, o *Object, at Position) (had []Medium, hit bool, err error) {
	key := appendObject(appendScope(nil, o.Source, o.Backend, o.Tenant), o.Key)
	had, hit = v.KeptMedia(nil, o, at)
	kept := slices.Clone(had)
	if had, err = v.Media(nil, o, at); err != nil {
		return nil, hit, err
	}
	if hit && !slices.Equal(had, kept) {
		return nil, hit, fmt.Errorf("%+v at %v: kept %+v, then %+v", *o, at, kept, had)
	}
	v.key = append(append(v.key[:0], keyHistory), key...)
	rows, _, err := v.newestRows([]Medium{{Name: "cpu"}, {Name: "disk"}}, at, false)
	if err == nil && !slices.Equal(had, rows) {
		err = fmt.Errorf("%+v at %v in a view of offset %d, kept before: %v\ngot  %+v\nrows %+v", *o, at, v.Applied(), hit, had, rows)
	}
	if err == nil {
		err = sameAsRows(v, o)
	}
	if err == nil {
		err = sameEvents(v, o, Position{}, at, false)
	}
	return had, hit, err
}

// sameAsRows compares what a view remembers with its rows.
func sameAsRows(v *View, o *Object) error {
	same := func(what string, got, want any, err error) error {
		if err == nil && !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("%s in a view of offset %d: got %+v, rows %+v", what, v.Applied(), got, want)
		}
		return err
	}
	for _, space := range []byte{keyClear, keyProof} {
		prefix := appendScope([]byte{space}, o.Source, o.Backend, o.Tenant)
		got, err := v.newestOf(prefix)
		want, rerr := v.newestAt(prefix, len(prefix))
		if err := same(string(space), got, want, errors.Join(err, rerr)); err != nil {
			return err
		}
	}
	mark, has, err := v.Mark(o.Source, math.MaxUint64-1)
	wantMark, rerr := v.markBefore(o.Source, math.MaxUint64)
	if err := same("mark", found[Mark]{mark, has}, wantMark, errors.Join(err, rerr)); err != nil {
		return err
	}
	scope := &Scope{o.Source, o.Backend, o.Tenant}
	clear, hasClear, err := v.Cleared(o, anyTime)
	for _, back := range []bool{false, true} {
		// The newest alone lies behind what lies directly before it, and none behind itself.
		marks, merr := v.MarkPage(nil, o.Source, mark.From-1, math.MaxUint64-1, back, 9)
		none, nerr := v.MarkPage(nil, o.Source, mark.From, math.MaxUint64-1, back, 9)
		if has && (len(marks) != 1 || len(none) != 0) {
			err = errors.Join(err, fmt.Errorf("%d and %d marks from the newest on", len(marks), len(none)))
		}
		before := clear.Position
		before.Event--
		clears, cerr := v.ClearPage(nil, scope, before, anyTime, back, 9)
		gone, gerr := v.ClearPage(nil, scope, clear.Position, anyTime, back, 9)
		if hasClear && (len(clears) != 1 || len(gone) != 0) {
			err = errors.Join(err, fmt.Errorf("%d and %d clears from the newest on", len(clears), len(gone)))
		}
		if err = errors.Join(err, merr, nerr, cerr, gerr); err != nil {
			return err
		}
	}
	flags, err := v.Flagged(o.Source)
	wantFlags, rerr := v.flagged(o.Source)
	if err := same("flags", flags, wantFlags, errors.Join(err, rerr)); err != nil {
		return err
	}
	backends, err := v.Backends(o.Source, o.Tenant)
	wantBackends, rerr := v.backends(o.Source, o.Tenant)
	if err := same("backends", backends, wantBackends, errors.Join(err, rerr)); err != nil {
		return err
	}
	base, err := readBaseline(v.snap)
	return same("base", v.Base(), base, err)
}

// TestHotBesideWrites: while records and readings of the master are applied, the journal pruned, and the index rebuilt and trimmed, views ask for
// the same few objects again and again, now and in the past; what they get is always what the rows of their view say.
func TestHotBesideWrites(t *testing.T) {
	seed := testkit.Seed(t)
	w := newWorld(t, seed, 1)
	w.add(100)
	o := testOptions(vfs.NewMem())
	o.FlushEvents, o.CheckpointEvents = 300, 100
	x := w.openIndex(o)
	x.anew = func(_, _, _, _, _ uint64) bool { return x.Generation()%2 == 0 } // rebuilt, and then trimmed in place
	if err := x.CatchUp(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked, hits atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		if err := x.Follow(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
	for n := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 100+n))
		work.Go(func() {
			for ctx.Err() == nil {
				applied := x.Applied()
				v, err := x.View()
				if err != nil {
					t.Errorf("View: %v", err)
					cancel()
					return
				}
				if v.Applied() < applied {
					t.Errorf("a view of offset %d, %d was applied before", v.Applied(), applied)
					cancel()
				}
				for range 1 + rng.IntN(20) {
					at := Behind(v.Source(1).AsOf.Offset)
					if rng.IntN(3) == 0 {
						at = Behind(v.Applied() - min(v.Applied(), rng.Uint64N(30)))
					}
					_, hit, err := askTwice(v, anyObject(rng), at)
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
						cancel()
					}
					if asked.Add(1); hit {
						hits.Add(1)
					}
				}
				if err := v.Close(); err != nil {
					t.Errorf("closing a view: %v", err)
				}
			}
		})
	}
	for round := range 30 {
		w.add(1 + w.rng.IntN(40))
		if h := w.begun(); round%3 == 0 { // corrections lie behind newer events
			w.add(5)
			var entries []reading.Entry
			for _, k := range testKeys[:4] {
				entries = append(entries, reading.Entry{What: reading.Present, Key: []byte(k), Medium: []byte(pick(w.rng, testMedia[:4]))})
			}
			w.ended(h, h, round%2, entries...)
		}
		switch round % 10 {
		case 4:
			if err := x.Rebuild(t.Context(), nil); err != nil {
				t.Errorf("Rebuild: %v", err)
			}
		case 5, 9:
			if _, err := x.Prune(t.Context(), w.j.Durable()/2, BaselineOptions{ForgetRemoved: round > 15}, nil); err != nil && !errors.Is(err, ErrNothingToPrune) {
				t.Errorf("Prune: %v", err)
			}
		}
		// A write is not hurried past those who ask.
		for begun := asked.Load(); asked.Load() < begun+50 && ctx.Err() == nil; {
			runtime.Gosched()
		}
	}
	cancel()
	work.Wait()
	t.Logf("%d questions, %d of them about what was kept", asked.Load(), hits.Load())
	if hits.Load() == 0 {
		t.Error("nothing was kept")
	}
}

// TestHotIsCarried: an object is kept once it was asked for, also one that never was; an event of it brings up what is kept for views behind the
// write, and older ones take nothing of it; a view that is not of the newest state keeps nothing; a reading's correction has its object forgotten.
func TestHotIsCarried(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.script(w.stored("a"), w.stored("b"))
	x := w.openIndex(testOptions(vfs.NewMem()))
	upTo(t, x, uint64(len(w.records)))
	object := func(key string) *Object { return &Object{Source: 1, Tenant: []byte("default"), Key: []byte(key)} }
	kept := func(v *View, key string) bool {
		t.Helper()
		_, hit, err := askTwice(v, object(key), Behind(v.Applied()))
		if err != nil {
			t.Fatal(err)
		}
		return hit
	}
	expect := func(v *View, a, b bool) {
		t.Helper()
		if kept(v, "a") != a || kept(v, "b") != b {
			t.Fatalf("kept: a not %v, or b not %v", a, b)
		}
	}
	old := view(t, x)
	expect(old, false, false)
	expect(old, true, true)
	if kept(old, "never") || !kept(old, "never") {
		t.Fatal("of an object that never was it is not kept that there is none, or before it was asked for")
	}
	w.script(w.stored("a"), w.stored("never"))
	upTo(t, x, uint64(len(w.records)))
	v := view(t, x) // nothing rebuilds the index meanwhile
	expect(old, false, true)
	expect(old, false, true) // it is not of the newest state
	expect(v, true, true)
	if !kept(v, "never") {
		t.Fatal("the first event of an object did not bring up that there was none")
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	h := w.begun()
	w.script(w.stored("b"))
	upTo(t, x, uint64(len(w.records)))
	w.ended(h, h, 0, reading.Entry{What: reading.Present, Key: []byte("a"), Medium: []byte("disk")})
	upTo(t, x, uint64(len(w.records)))
	v = view(t, x)
	expect(old, false, false)
	expect(v, false, true)
	expect(v, true, true)
	if err := errors.Join(old.Close(), v.Close()); err != nil {
		t.Fatal(err)
	}
	if err := x.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	v = view(t, x)
	defer v.Close()
	expect(v, false, false)
}

// TestHotIsWhole: of an object that was asked for at a past moment all events are kept, for every moment; behind an event of it the newest are left;
// one with many events is sought each time.
func TestHotIsWhole(t *testing.T) {
	w := newWorld(t, 1, 1)
	w.script(w.stored("a"))
	w.script(w.stored("b"))
	w.script(w.stored("a"))
	for range wholeRows + 1 {
		w.script(w.stored("many"))
	}
	x := w.openIndex(testOptions(vfs.NewMem()))
	upTo(t, x, uint64(len(w.records)))
	ask := func(key string, at Position) bool {
		t.Helper()
		v := view(t, x)
		_, hit, err := askTwice(v, &Object{Source: 1, Tenant: []byte("default"), Key: []byte(key)}, at)
		if err := errors.Join(err, v.Close()); err != nil {
			t.Fatal(err)
		}
		return hit
	}
	all := uint64(len(w.records))
	expect := func(key string, hit bool, at ...uint64) {
		t.Helper()
		for _, o := range at {
			if ask(key, Behind(o)) != hit {
				t.Errorf("%s at %d of %d was kept: %v", key, o, w.j.Durable(), !hit)
			}
		}
	}
	expect("a", false, 1)
	expect("a", true, 0, 1, 2, 3, all-1, all)
	expect("never", false, 2)
	expect("never", true, 0, 2, all)
	expect("many", false, 5, 6, 5)
	w.script(w.stored("b"))
	upTo(t, x, uint64(len(w.records)))
	expect("a", true, 0, 1, all, all+1)
	w.script(w.stored("a"), w.stored("a"))
	upTo(t, x, uint64(len(w.records)))
	expect("a", true, all+3)
	expect("a", false, all+2)
	expect("a", true, 1, 3, all+1, all+2, all+3)
	expect("never", true, 0, all+2)
}

// TestHotCarriesToTheNext: what a write brought up is of the state that comes behind it, whatever moment is asked for; media stay in the order of
// their bytes, and an event behind a newer one changes nothing.
func TestHotCarriesToTheNext(t *testing.T) {
	h, s := newTestHot(64 << 10 * 4)
	h.test(t, 1, s)
	key, scope := []byte("ofofobject-1"), h.scope
	evidence := func(seq uint64) []byte { return appendEvidence(nil, &Evidence{Stored: true, Epoch: 1, Seq: seq}) }
	for _, e := range []struct {
		medium []byte
		at     Position
	}{{appendMedium(nil, []byte("nvme")), Position{7, 1}}, {[]byte{mediumDisk}, Position{8, 1}}, {[]byte{mediumDisk}, Position{5, 1}}, {appendMedium(nil, []byte("gpu")), Position{9, 1}}} {
		h.carry(key, scope, e.medium, e.at, evidence(e.at.Offset), 2)
	}
	ask := func(number uint64) (names []string, offsets []uint64, hit bool) {
		media, hit := h.media([]Medium{{Name: "cpu"}, {Name: "disk"}}, h.hash(key), key, scope, number, Behind(1<<40))
		for _, m := range media {
			names, offsets = append(names, m.Name), append(offsets, m.Newest.Position.Offset)
		}
		return names, offsets, hit
	}
	if _, _, hit := ask(1); hit {
		t.Error("a view from before the write took what the write brought up")
	}
	names, offsets, hit := ask(2)
	if !hit || !slices.Equal(names, []string{"cpu", "disk", "gpu", "nvme"}) || !slices.Equal(offsets, []uint64{1, 8, 9, 7}) {
		t.Errorf("kept: %v, %v at %v", hit, names, offsets)
	}
	// Of a whole entry the newest of each medium are left.
	var events []byte
	for _, offset := range []uint64{6, 4, 2} {
		events = append(appendLive(append(events, mediumCPU), Position{offset, 1}), evidence(offset)...)
	}
	h.keepEvents(h.hash(key), key, scope, events, true, s)
	for _, o := range []uint64{7, 3} { // one that is newer, one that lies between
		if h.carry(key, scope, []byte{mediumCPU}, Position{o, 1}, evidence(o), 2); o == 3 {
			continue
		}
		if names, offsets, hit := ask(2); !hit || !slices.Equal(names, []string{"cpu", "disk"}) || offsets[0] != 7 {
			t.Errorf("kept of what was whole: %v, %v at %v", hit, names, offsets)
		}
		if _, hit := h.media([]Medium{{}, {}}, h.hash(key), key, scope, 2, Behind(5)); hit {
			t.Error("an object that changed is still kept as whole")
		}
		h.keepEvents(h.hash(key), key, scope, events, true, s)
	}
	if _, offsets, hit := ask(2); !hit || offsets[0] != 6 {
		t.Errorf("behind an event between others: %v at %v", hit, offsets)
	}
	if _, hit := h.media([]Medium{{}, {}}, h.hash(key), key, scope, 2, Behind(5)); hit {
		t.Error("an object that changed in its past is still kept as whole")
	}
	h.carry([]byte("ofofobject-2"), scope, []byte{mediumCPU}, Position{9, 1}, evidence(9), 2)
	if _, hit := h.media([]Medium{{}, {}}, h.hash([]byte("ofofobject-2")), []byte("ofofobject-2"), scope, 2, Behind(1<<40)); hit {
		t.Error("a write put in an object of which nothing was kept")
	}
}

// TestHotIsBounded: however many objects are asked for, no more bytes are kept than was said; what is asked for again stays; and a set that
// fits is kept whole.
func TestHotIsBounded(t *testing.T) {
	const size = 64 << 10 * 4
	h, s := newTestHot(size)
	for i := range 50_000 {
		h.test(t, i, s)
		if i%10 == 0 && !h.test(t, 7, s) && i > 200 {
			t.Fatalf("an object that is asked for all the time was forgotten at %d", i)
		}
	}
	bytes, entries := 0, 0
	for i := range h.shards {
		r := &h.shards[i]
		bytes += cap(r.bytes) + 8*len(r.places)
		entries += r.count
	}
	if bytes > size || entries < 2000 {
		t.Fatalf("%d entries in %d of %d bytes", entries, bytes, size)
	}
	for range 3 {
		for i := range entries / 2 {
			h.test(t, i, s)
		}
	}
	for i := range entries / 2 {
		if !h.test(t, i, s) {
			t.Fatalf("object %d of a set that is half of what was kept is not", i)
		}
	}
	h, s = newTestHot(64 * 100)
	for range 2 {
		if h.test(t, 1, s) {
			t.Error("something was kept in no room")
		}
	}
}

// testHot keeps objects that are told by a number.
type testHot struct {
	*hot
	scope int
}

func newTestHot(size int64) (testHot, *state) {
	s := &state{number: 1}
	f := &fresh{}
	f.still.Store(s)
	return testHot{newHot(f, size), 4}, s
}

// test asks for an object, and keeps it if it is not.
func (h testHot) test(t testing.TB, i int, s *state) (hit bool) {
	key := fmt.Appendf(nil, "ofofobject-%d", i)
	media := []Medium{{Name: "cpu", Has: true, Newest: Evidence{Position: Position{uint64(i), 1}, Stored: true, Epoch: 1, Seq: uint64(i)}}, {Name: "disk"}}
	got, hit := h.media([]Medium{{Name: "cpu"}, {Name: "disk"}}, h.hash(key), key, h.scope, 1, Behind(1<<40))
	if hit && !slices.Equal(got, media) {
		t.Fatalf("object %d came back as %+v", i, got)
	}
	if !hit {
		h.keep(h.hash(key), key, h.scope, media, s)
	}
	return hit
}

// TestHotRing: entries of any length are put under few tags, so that the table has long runs, asked for and forgotten. What is under a tag is
// always what was put there last, or nothing; and nothing if it was forgotten since.
func TestHotRing(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 12 {
		size := hotLeast << rng.IntN(5)
		var r hotRing
		want := map[uint32]string{}
		gone := 0
		for n := range 5000 {
			tag := uint32(rng.IntN(8)<<29 | rng.IntN(20*(round+1)))
			entry, at, ok := r.get(tag)
			switch had, put := want[tag]; {
			case ok && (!put || string(entry) != had):
				t.Fatalf("seed %d, round %d, step %d: %x is %q, put was %q", seed, round, n, tag, entry, had)
			case ok:
				r.hit(at)
			case put:
				gone++
			}
			switch rng.IntN(4) {
			case 0:
				r.remove(tag)
				delete(want, tag)
			case 1, 2:
				text := bytes.Repeat([]byte{byte(rng.Uint32())}, 1+rng.IntN(size/4-hotHead))
				r.put(tag, append(make([]byte, hotHead), text...), size)
				want[tag] = string(text)
			}
			if bytes := cap(r.bytes) + 8*len(r.places); bytes > size || r.count > len(want) {
				t.Fatalf("seed %d, round %d, step %d: %d bytes of %d, %d places for %d tags", seed, round, n, bytes, size, r.count, len(want))
			}
		}
		if gone == 0 {
			t.Errorf("seed %d, round %d: nothing ever went", seed, round)
		}
		r.reset()
		if _, _, ok := r.get(1); ok || r.count != 0 {
			t.Errorf("seed %d: something is left", seed)
		}
	}
}

// BenchmarkHotSet keeps a sixteenth of a million objects as connectors name them, on cpu and disk, in a sixteenth of the memory: what entries
// take, and how many questions at random find them.
func BenchmarkHotSet(b *testing.B) {
	const objects = 1_000_000 / 16
	key := func(dst []byte, i uint64) []byte {
		dst = appendScope(dst[:0], 1, []byte("mooncake-master-0"), []byte("default"))
		return appendObject(dst, fmt.Appendf(nil, "%064x_0_k", i*0x9e3779b97f4a7c15))
	}
	scope := len(appendScope(nil, 1, []byte("mooncake-master-0"), []byte("default")))
	for _, mib := range []int64{64, 96, 112, 128} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			f, s := &fresh{}, &state{number: 1}
			f.still.Store(s)
			h := newHot(f, mib<<20/16)
			media := []Medium{{Name: "cpu", Has: true}, {Name: "disk", Has: true}}
			rng := rand.New(rand.NewPCG(1, 2))
			var k []byte
			ask := func(i uint64) bool {
				k = key(k, i)
				_, hit := h.media([]Medium{{}, {}}, h.hash(k), k, scope, 1, Behind(1<<40))
				if !hit {
					for m := range media {
						e := &media[m].Newest
						*e = Evidence{Position: Position{1e6 + i, 17}, Stored: true, Epoch: 3, Seq: 1e6 + i, HasID: true, ID: 6e7 + i, HasTime: true, Time: 1_795_985_000_000}
						e.Received = e.Time + 40
					}
					h.keep(h.hash(k), k, scope, media, s)
				}
				return hit
			}
			for i := range uint64(objects) {
				ask(i)
			}
			for range 2 * objects {
				ask(rng.Uint64N(objects))
			}
			hits := 0
			b.ResetTimer()
			for range b.N {
				if ask(rng.Uint64N(objects)) {
					hits++
				}
			}
			b.StopTimer()
			bytes, entries := 0, 0
			for i := range h.shards {
				bytes += cap(h.shards[i].bytes) + 8*len(h.shards[i].places)
				entries += h.shards[i].count
			}
			b.ReportMetric(100*float64(hits)/float64(b.N), "%hits")
			b.ReportMetric(float64(entries), "entries")
			b.ReportMetric(float64(bytes)/float64(entries), "B/entry")
		})
	}
}
