package index

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// naive answers from the list of records alone, by looking at every one.
type naive struct{ w *world }

type happened struct {
	source uint32
	event.Fields
	evidence Evidence
	keyed    bool // R7: a per-object event of the process stood before it
}

// events lists what happened at or before a position.
func (n *naive) events(at Position) []happened {
	var out []happened
	for i := range n.w.records {
		r := &n.w.records[i]
		if !r.Applies() {
			continue
		}
		keyed := r.Keyed
		for k, f := range r.events {
			p := Position{r.Offset, uint32(k + 1)}
			if at.Before(p) {
				return out
			}
			out = append(out, happened{r.Source, f, Evidence{
				Position: p, Stored: f.Type == event.Stored, Epoch: r.Epoch, Seq: r.Seq, HasID: true, ID: f.ID, HasTime: r.HasTime, Time: r.Time, Received: r.Received / 1e6, Window: r.InWindow,
				Cut: k == len(r.events)-1 && k+1 >= fullBatch, HasGroup: f.GroupID != nil && f.Type != event.Cleared,
			}, keyed})
			keyed = keyed || f.Type != event.Cleared
		}
	}
	return out
}

func (h *happened) about(o *Object) bool {
	return h.Type != event.Cleared && h.inScope(o) && h.Key == string(o.Key)
}

func (h *happened) inScope(o *Object) bool {
	return h.source == o.Source && h.Backend == string(o.Backend) && h.Tenant == string(o.Tenant)
}

func (n *naive) media(events []happened, o *Object) []Medium {
	newest := map[string]Medium{"cpu": {Name: "cpu"}, "disk": {Name: "disk"}}
	for i := range events {
		if h := &events[i]; h.about(o) {
			newest[h.Medium] = Medium{Name: h.Medium, Has: true, Newest: h.evidence}
		}
	}
	out := []Medium{newest["cpu"], newest["disk"]}
	var others []string
	for name := range newest {
		if name != "cpu" && name != "disk" {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others {
		out = append(out, newest[name])
	}
	return out
}

func (n *naive) clear(events []happened, o *Object, proof bool) (e Evidence, ok bool) {
	for i := range events {
		if h := &events[i]; h.Type == event.Cleared && h.inScope(o) && (h.keyed || !proof) {
			e, ok = h.evidence, true
		}
	}
	return e, ok
}

func (n *naive) live(events []happened) uint64 {
	type object struct {
		source               uint32
		backend, tenant, key string
	}
	on := map[object]map[string]bool{}
	for i := range events {
		h := &events[i]
		o := object{h.source, h.Backend, h.Tenant, h.Key}
		switch h.Type {
		case event.Cleared:
			for k := range on {
				if k.source == o.source && k.backend == o.backend && k.tenant == o.tenant {
					delete(on, k)
				}
			}
		case event.Stored:
			if on[o] == nil {
				on[o] = map[string]bool{}
			}
			on[o][h.Medium] = true
		case event.Removed:
			delete(on[o], h.Medium)
		}
	}
	count := uint64(0)
	for _, media := range on {
		if len(media) > 0 {
			count++
		}
	}
	return count
}

func (n *naive) backends(source uint32, tenant string) []string {
	var out []string
	for _, h := range n.events(Behind(1 << 62)) {
		if h.source == source && h.Tenant == tenant && !slices.Contains(out, h.Backend) {
			out = append(out, h.Backend)
		}
	}
	slices.Sort(out)
	return out
}

// gaps are the lines that the records' verdicts demand.
func (n *naive) gaps(source uint32) []Gap {
	var out []Gap
	before := uint64(0)
	var timeBefore *int64
	for i := range n.w.records {
		r := &n.w.records[i]
		if r.Source != source || r.Kind != journal.Message || r.Duplicate {
			continue
		}
		var timeAfter *int64
		if r.HasTime {
			timeAfter = &r.Time
		}
		line := Gap{Source: source, After: r.Offset, Before: before, TimeBefore: timeBefore, TimeAfter: timeAfter, Received: r.Received / 1e6}
		if g := r.Gap; g.Cause != continuity.CauseNone {
			l := line
			l.Cause, l.Epoch, l.Lost, l.Min, l.Max = g.Cause, g.Epoch, g.Lost, g.Min, g.Max
			if g.Last != 0 {
				l.HasSeq, l.First, l.Last, l.Missing = true, g.First, g.Last, g.Last-g.First+1
			}
			out = append(out, l)
		}
		if r.Damage != event.None {
			l := line
			l.Cause, l.Epoch, l.Damage, l.HasSeq = continuity.Damaged, r.Epoch, uint8(r.Damage), r.HasSeq
			if r.HasSeq {
				l.First, l.Last = r.Seq, r.Seq
			}
			out = append(out, l)
		}
		before, timeBefore = r.Offset, timeAfter
	}
	return out
}

// doubted reports whether some mark of the source at or before the record `at` puts evidence at p in doubt (R2).
func (n *naive) doubted(source uint32, p Position, at uint64) bool {
	for i := range n.w.records[:at] {
		r := &n.w.records[i]
		if r.Source != source || r.Mark == continuity.NoMark {
			continue
		}
		end := Position{r.Offset, 0}
		if r.Mark == continuity.MarkBehind {
			end = Behind(r.Offset)
		}
		if !end.Before(p) {
			return true
		}
	}
	return false
}

func TestAgainstNaive(t *testing.T) {
	seed := testkit.Seed(t)
	for run := range uint64(2) {
		w := newWorld(t, seed+run, 2)
		x := w.openIndex(testOptions(vfs.NewMem()))
		n := naive{w}
		for range 2 {
			w.add(150)
			if err := x.CatchUp(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if w.rng.IntN(2) == 0 {
				if err := x.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			n.compare(x)
		}
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, run)
		}
	}
}

func (n *naive) compare(x *Index) {
	t, w := n.w.t, n.w
	v := view(t, x)
	defer v.Close()
	end := uint64(len(w.records))
	if v.Applied() != end {
		t.Fatalf("applied %d of %d", v.Applied(), end)
	}
	for range 12 {
		at := Position{1 + w.rng.Uint64N(end), uint32(w.rng.IntN(8))}
		if w.rng.IntN(2) == 0 {
			at = Behind(at.Offset)
		}
		events := n.events(at)
		for range 15 {
			o := Object{Source: uint32(1 + w.rng.IntN(len(w.streams))), Backend: []byte(pick(w.rng, testBackends)), Tenant: []byte(pick(w.rng, testTenants)), Key: []byte(pick(w.rng, testKeys))}
			if w.rng.IntN(20) == 0 {
				o.Key = append(o.Key, "never"...)
			}
			got, err := v.Media([]Medium{{Name: "kept"}}, &o, at)
			want := n.media(events, &o)
			if err != nil || len(got) == 0 || got[0].Name != "kept" || !slices.Equal(got[1:], want) {
				t.Fatalf("Media of %+v at %v:\ngot  %+v, %v\nwant %+v", o, at, got, err, want)
			}
			for _, proof := range []bool{false, true} {
				ask := v.Cleared
				if proof {
					ask = v.Proof
				}
				e, ok, err := ask(&o, at)
				wantE, wantOK := n.clear(events, &o, proof)
				if err != nil || ok != wantOK || ok && cleared(e) != cleared(wantE) {
					t.Fatalf("clear of %+v at %v, proof %v:\ngot  %+v, %v, %v\nwant %+v, %v", o, at, proof, e, ok, err, wantE, wantOK)
				}
			}
		}
		n.compareMarks(v, events, at)
	}
	for _, s := range w.streams {
		n.compareSource(v, s)
	}
	live, err := v.CountLive(t.Context())
	if want := n.live(n.events(Behind(end))); err != nil || live != want {
		t.Fatalf("CountLive = %d, %v, want %d", live, err, want)
	}
}

// cleared is evidence of a clear, whose Stored means nothing.
func cleared(e Evidence) Evidence {
	e.Stored = false
	return e
}

// compareMarks holds the mark rows against the verdicts for everything that counts as evidence.
func (n *naive) compareMarks(v *View, events []happened, at Position) {
	t := n.w.t
	for _, s := range n.w.streams {
		m, ok, err := v.Mark(s.source.ID, at.Offset)
		if err != nil {
			t.Fatal(err)
		}
		if ok && m.From > at.Offset {
			t.Fatalf("Mark at %d begins at %d", at.Offset, m.From)
		}
		for i := range events {
			h := &events[i]
			if h.source != s.source.ID || h.Type == event.Cleared && !h.keyed {
				continue
			}
			got := ok && !m.End.Before(h.evidence.Position)
			if want := n.doubted(h.source, h.evidence.Position, at.Offset); got != want {
				t.Fatalf("evidence of source %d at %v, as of %v: in doubt %v, want %v (mark %+v)", h.source, h.evidence.Position, at, got, want, m)
			}
		}
	}
}

func (n *naive) compareSource(v *View, s *testStream) {
	t, id := n.w.t, s.source.ID
	var gaps []Gap
	if err := v.Gaps(id, func(g *Gap) error { gaps = append(gaps, *g); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := n.gaps(id); !reflect.DeepEqual(gaps, want) {
		for i := range min(len(gaps), len(want)) {
			if !reflect.DeepEqual(gaps[i], want[i]) {
				t.Errorf("gap %d\ngot  %+v\nwant %+v", i, gaps[i], want[i])
			}
		}
		t.Fatalf("source %d: %d gaps, want %d", id, len(gaps), len(want))
	}
	for _, tenant := range append(slices.Clone(testTenants), "never", "", "t\x00") {
		got, err := v.Backends(id, []byte(tenant))
		text := []string{}
		for _, b := range got {
			text = append(text, string(b))
		}
		if want := n.backends(id, tenant); err != nil || !slices.Equal(text, want) {
			t.Fatalf("Backends of tenant %q: %q, %v, want %q", tenant, text, err, want)
		}
	}
	var messages, events, duplicates, damaged uint64
	for i := range n.w.records {
		r := &n.w.records[i]
		if r.Source != id || r.Kind != journal.Message {
			continue
		}
		messages++
		switch {
		case r.Duplicate:
			duplicates++
		case r.Damage != event.None:
			damaged++
		default:
			events += uint64(len(r.events))
		}
	}
	st := v.Source(id)
	got := fmt.Sprint(st.Messages, st.Events, st.Duplicates, st.Damaged, st.Gaps)
	if want := fmt.Sprint(messages, events, duplicates, damaged, len(gaps)); got != want {
		t.Fatalf("source %d: messages, events, duplicates, damaged, gaps: %s, want %s", id, got, want)
	}
	if unknown := v.Source(99); !reflect.DeepEqual(unknown, SourceState{}) {
		t.Fatalf("a source never heard of: %+v", unknown)
	}
}

// TestStreamsAreWild: the random streams hold what the tests are for.
func TestStreamsAreWild(t *testing.T) {
	seed := testkit.Seed(t)
	w := newWorld(t, seed, 2)
	w.add(2000)
	met := map[string]int{}
	for i := range w.records {
		r := &w.records[i]
		met["mark "+r.MarkCause.String()]++
		met["gap "+r.Gap.Cause.String()]++
		if r.Duplicate {
			met["duplicate"]++
		}
		if r.InWindow {
			met["window"]++
		}
		for _, e := range r.events {
			met[e.Type.String()]++
			if e.Type == event.Cleared && !r.Keyed {
				met["keyless clear"]++
			}
		}
	}
	for _, what := range strings.Split("mark damaged,mark reconnect,mark disconnected,mark publisher_restart,gap publisher_queue,gap transport,gap publisher_restart,duplicate,window,stored,removed,cleared,keyless clear", ",") {
		if met[what] == 0 {
			t.Errorf("seed %d: no %s", seed, what)
		}
	}
}
