package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// keysOfAllForms are keys as text and as packed hashes, many with a common beginning, and with all bytes that keys treat apart.
func keysOfAllForms(rng *rand.Rand) []string {
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("0123456789abcdef"[rng.IntN(16)])
		}
		return b.String()
	}
	keys := []string{"a", "\x00", "\x00\x01", "\x00\xff", "a\x00", "a\x00b", "\xff", "\xff\xff", "0", "00", "f", "ff", "g", ":", "A", "_"}
	hash := digits(64)
	for _, h := range []string{hash, digits(64), hash[:63] + "f", hash[:32] + digits(32), strings.Repeat("f", 64), strings.Repeat("0", 64), hash[:31] + "f" + digits(32)} {
		keys = append(keys, h, h+"_0_k", h+"\x00", h+"\x00\x01", h+"\xff", h+"0", h[:63], h[:1], h[:33]+"G"+h[34:], strings.ToUpper(h), h[:63]+"g")
	}
	for range 20 {
		k := keys[rng.IntN(len(keys))]
		keys = append(keys, k[:rng.IntN(len(k)+1)]+string([]byte{byte(rng.IntN(256))}))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// walked is a world whose events have keys of all forms, few enough that each has several.
type walked struct {
	*world
	keys []string
	x    *Index
}

func newWalked(t *testing.T, events int) *walked {
	seed := testkit.Seed(t)
	w := &walked{world: newWorld(t, seed, 2)}
	w.keys = keysOfAllForms(w.rng)
	w.x = w.openIndex(testOptions(vfs.NewMem()))
	for done := 0; done < events; {
		g := w.j.NewGroup()
		first := len(w.records)
		for range 1 + w.rng.IntN(30) {
			done += w.put20(g, w.streams[w.rng.IntN(2)])
		}
		w.commit(g, first)
		if err := w.x.CatchUp(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if w.rng.IntN(3) == 0 {
			if err := w.x.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// put20 appends a message of up to 20 events.
func (w *walked) put20(g *journal.Group, s *testStream) int {
	n := w.rng.IntN(21)
	events := make([]event.Fields, n)
	hot := w.keys[w.rng.IntN(4)*len(w.keys)/4]
	for i := range events {
		f := w.event(s)
		f.Key = pick(w.rng, w.keys)
		if w.rng.IntN(3) == 0 { // more of its events than a walk steps over
			f.Key, f.Backend, f.Tenant = hot, testBackends[1], testTenants[0]
			f.Medium = pick(w.rng, []string{"cpu", "nvme\x00"})
		}
		if f.Type != event.Cleared && w.rng.IntN(2) == 0 {
			group := pick(w.rng, []string{"", "g", "g\x00", connectorGroup + f.Key, connectorGroup + f.Key[:len(f.Key)/2]})
			f.GroupID = &group
		}
		events[i] = f
	}
	s.seq++
	seq := event.SeqFrame(s.seq)
	w.now += int64(w.rng.IntN(50))
	w.put(g, s, capture.Record{Kind: capture.Message, Received: w.now * 1e6, Frames: [][]byte{{}, seq[:], w.encoder.AppendPayload(nil, w.now-5, events, 0)}}, events)
	return n
}

// naiveRow is a row as it should be read.
type naiveRow struct {
	medium string
	at     Position
	stored bool
	group  string // " " in front; empty: none
}

func (r naiveRow) String() string {
	return fmt.Sprintf("%s %v %v%s", r.medium, r.at, r.stored, r.group)
}

// naiveObjects lists each object of a scope with its rows, medium by medium, the newest first.
func (w *walked) naiveObjects(s *Scope) map[string][]naiveRow {
	out := map[string][]naiveRow{}
	for i := range w.records {
		r := &w.records[i]
		if !r.Applies() || r.Source != s.Source {
			continue
		}
		for n, f := range r.events {
			if f.Type == event.Cleared || f.Backend != string(s.Backend) || f.Tenant != string(s.Tenant) {
				continue
			}
			row := naiveRow{f.Medium, Position{r.Offset, uint32(n + 1)}, f.Type == event.Stored, ""}
			if f.GroupID != nil {
				row.group = " " + *f.GroupID
			}
			out[f.Key] = append(out[f.Key], row)
		}
	}
	for _, rows := range out {
		order := func(medium string) string { return string(appendMedium(nil, []byte(medium))) }
		slices.SortFunc(rows, func(a, b naiveRow) int {
			if c := strings.Compare(order(a.medium), order(b.medium)); c != 0 {
				return c
			}
			return b.at.Compare(a.at)
		})
	}
	return out
}

func (w *walked) scopes() []Scope {
	var out []Scope
	for _, s := range w.streams {
		for _, b := range testBackends {
			for _, t := range testTenants {
				out = append(out, Scope{s.source.ID, []byte(b), []byte(t)})
			}
		}
	}
	return out
}

// readRows reads what is left of the walk's object.
func (w *walked) readRows(walk *Walk) []naiveRow {
	var out []naiveRow
	for walk.NextRow() {
		out = append(out, w.row(walk))
	}
	return out
}

func (w *walked) row(walk *Walk) naiveRow {
	r := walk.Row()
	row := naiveRow{r.Medium, r.Position, r.Stored, ""}
	group, err := r.AppendGroup(nil, walk.Key())
	if err != nil {
		w.t.Fatal(err)
	}
	if r.HasGroup {
		row.group = " " + string(group)
	}
	return row
}

// prefixes are beginnings of keys, of every length, and such that begin none.
func (w *walked) prefixes() []string {
	out := []string{"", "\x00", "\xff", "zz", "0g", strings.Repeat("f", 65)}
	for range 40 {
		k := pick(w.rng, w.keys)
		out = append(out, k[:w.rng.IntN(len(k)+1)])
	}
	return out
}

func (w *walked) close(walk *Walk) {
	w.t.Helper()
	if err := walk.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// TestKeyBounds holds the bounds of keys against comparing the keys themselves, for keys that differ in a byte from each other.
func TestKeyBounds(t *testing.T) {
	seed := testkit.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	keys := keysOfAllForms(rng)
	for range 300_000 {
		key := pick(rng, keys)
		near := []byte(pick(rng, keys))
		if rng.IntN(3) > 0 {
			near = []byte(key[:rng.IntN(len(key)+1)])
			if len(near) > 0 && rng.IntN(2) == 0 {
				near[len(near)-1] = byte(int(near[len(near)-1]) + rng.IntN(81) - 40)
			}
			if rng.IntN(3) == 0 {
				near = append(near, pick(rng, keys)...)
			}
		}
		if key == "" {
			continue
		}
		stored := appendObject(nil, []byte(key))
		if got, want := bytes.Compare(stored, behind(stored[0], near)) >= 0, key > string(near); got != want {
			t.Fatalf("%q behind %q: %v", key, near, got)
		}
		in := 0
		for _, r := range keyRanges(near) {
			if bytes.Compare(r.low, stored) <= 0 && bytes.Compare(stored, r.high) < 0 {
				in++
			}
		}
		if want := strings.HasPrefix(key, string(near)); in > 1 || (in == 1) != want {
			t.Fatalf("%q begins with %q: in %d ranges", key, near, in)
		}
	}
}

func TestObjects(t *testing.T) {
	w := newWalked(t, 3000)
	v := view(t, w.x)
	defer v.Close()
	for _, s := range w.scopes() {
		objects := w.naiveObjects(&s)
		for _, prefix := range w.prefixes() {
			var after []byte
			if w.rng.IntN(2) == 0 {
				after = []byte(pick(w.rng, append(w.prefixes(), w.keys...)))
			}
			var want, got []string
			for _, k := range w.keys {
				if objects[k] != nil && strings.HasPrefix(k, prefix) && (after == nil || k > string(after)) {
					want = append(want, k)
				}
			}
			walk, err := v.ObjectsBehind(&s, []byte(prefix), after)
			if err != nil {
				t.Fatal(err)
			}
			for walk.Next() {
				got = append(got, string(walk.Key()))
				if w.rng.IntN(3) == 0 {
					continue // the rows are left
				}
				if rows, all := w.readRows(walk), objects[string(walk.Key())]; !slices.Equal(rows, all) {
					t.Fatalf("rows of %q:\ngot  %v\nwant %v", walk.Key(), rows, all)
				}
			}
			w.close(walk)
			if !slices.Equal(got, want) {
				t.Fatalf("objects of %+v, prefix %q, after %q:\ngot  %q\nwant %q", s, prefix, after, got, want)
			}
		}
	}
}

// TestSkips reads rows at random positions with skips between.
func TestSkips(t *testing.T) {
	w := newWalked(t, 3000)
	v := view(t, w.x)
	defer v.Close()
	end := uint64(len(w.records))
	at := func() Position {
		p := Position{w.rng.Uint64N(end + 2), uint32(w.rng.IntN(22))}
		if w.rng.IntN(3) == 0 {
			return Behind(p.Offset)
		}
		return p
	}
	for _, s := range w.scopes() {
		objects := w.naiveObjects(&s)
		walk, err := v.Objects(&s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for walk.Next() {
			left := objects[string(walk.Key())] // what is not read yet
			medium := ""
			drop := func(f func(naiveRow) bool) {
				for len(left) > 0 && medium != "" && left[0].medium == medium && f(left[0]) {
					left = left[1:]
				}
			}
			read := func(ok bool, what string) {
				if !ok {
					return
				}
				if got := w.row(walk); got != left[0] {
					t.Fatalf("%s of %q: got %v, want %v", what, walk.Key(), got, left[0])
				}
				medium, left = left[0].medium, left[1:]
			}
			for range 30 {
				p := at()
				older := func(r naiveRow) bool { return p.Before(r.at) }
				switch w.rng.IntN(6) {
				case 0:
					walk.SkipTo(p)
					drop(older)
				case 1:
					walk.SkipMedium()
					drop(func(naiveRow) bool { return true })
				case 2:
					for len(left) > 0 && older(left[0]) {
						left = left[1:]
					}
					ok := walk.NextRowAt(p)
					if ok != (len(left) > 0) {
						t.Fatalf("NextRowAt(%v) of %q: %v, left %v", p, walk.Key(), ok, left)
					}
					read(ok, "NextRowAt")
				case 3:
					drop(older)
					ok := walk.NextOfMediumAt(p)
					if ok != (len(left) > 0 && left[0].medium == medium) {
						t.Fatalf("NextOfMediumAt(%v) of %q: %v, medium %q, left %v", p, walk.Key(), ok, medium, left)
					}
					read(ok, "NextOfMediumAt")
				case 4:
					ok := walk.NextOfMedium()
					if ok != (len(left) > 0 && left[0].medium == medium) {
						t.Fatalf("NextOfMedium of %q: %v, medium %q, left %v", walk.Key(), ok, medium, left)
					}
					read(ok, "NextOfMedium")
				case 5:
					ok := walk.NextRow()
					if ok != (len(left) > 0) {
						t.Fatalf("NextRow of %q: %v, left %v", walk.Key(), ok, left)
					}
					read(ok, "NextRow")
				}
			}
		}
		w.close(walk)
	}
}

// TestPicks goes to objects in any order, also to such that do not exist.
func TestPicks(t *testing.T) {
	w := newWalked(t, 2000)
	v := view(t, w.x)
	defer v.Close()
	picks, err := v.Picks()
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		s := w.scopes()[w.rng.IntN(len(w.scopes()))]
		key := pick(w.rng, append(w.prefixes()[1:], w.keys...))
		o := Object{s.Source, s.Backend, s.Tenant, []byte(key)}
		if key == "" {
			continue
		}
		want := w.naiveObjects(&s)[key]
		picks.Pick(&o)
		if got := w.readRows(picks); !slices.Equal(got, want) || string(picks.Key()) != key {
			t.Fatalf("%+v: got %v of %q, want %v", o, got, picks.Key(), want)
		}
		if w.rng.IntN(20) > 0 {
			continue
		}
		walk, err := v.Object(&o)
		if err != nil {
			t.Fatal(err)
		}
		if !walk.Next() || !bytes.Equal(walk.Key(), o.Key) || !slices.Equal(w.readRows(walk), want) || walk.Next() {
			t.Fatalf("Object of %+v is not %v", o, want)
		}
		w.close(walk)
	}
	w.close(picks)
}
