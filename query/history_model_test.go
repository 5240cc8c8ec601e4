package query

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// TestHistoryModel holds histories on random streams against the oracle: every event, clear and mark that touched an object, and
// behind each the state and certainty that lookup would give there. And pages of any size are parts of the whole.
func TestHistoryModel(t *testing.T) {
	defer func(n int) { historyPageRows = n }(historyPageRows)
	historyPageRows = 2
	var met counts
	for n := range *modelStreams {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 7)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		r.record()
		for _, o := range r.oracle.Objects() {
			r.history(o, &met)
		}
		r.histories()
		r.close()
	}
	t.Logf("%+v", met)
	if met.Lines == 0 || met.Confirmed == 0 || met.Marks == 0 || met.Extended == 0 || met.Shadows == 0 || met.Within == 0 || met.Clears == 0 || met.Raw == 0 {
		t.Fatal("something was never met")
	}
}

// counts are what was met in histories.
type counts struct{ Lines, Confirmed, Marks, Extended, Shadows, Within, Clears, Raw, Pages, Readings, Corrections int }

func (r *recorded) name(o oracle.Object) Name {
	n := Name{Source: "model", Backend: Bytes(o.Backend), Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}
	if o.Backend == "" {
		n.Backend = Bytes{}
	}
	return n
}

// lines are what History gives, read back from its JSON.
func (r *recorded) lines(ask HistoryAsk) ([]HistoryLine, []string) {
	r.t.Helper()
	var lines []HistoryLine
	var text []string
	r.must(r.e.History(r.t.Context(), &ask, nil, func(v any) error {
		b, err := AppendJSON(nil, v)
		r.must(err)
		var l HistoryLine
		if err := json.Unmarshal(b, &l); err != nil {
			r.t.Fatalf("seed %d: %v: %s", r.stream.Seed, err, b)
		}
		if again := string(l.AppendJSON(nil)); again != string(b) {
			r.t.Fatalf("seed %d: read back and written:\n%s\n%s", r.stream.Seed, again, b)
		}
		lines, text = append(lines, l), append(text, string(b))
		return nil
	}))
	return lines, text
}

// history compares one object's with the oracle's.
func (r *recorded) history(o oracle.Object, met *counts) {
	raw := r.rng.IntN(4) == 0
	lines, text := r.lines(HistoryAsk{Name: r.name(o), Raw: raw})
	want := r.oracle.History(o)
	fail := func(i int, format string, args ...any) {
		r.t.Helper()
		r.t.Errorf("seed %d: %q, line %d: %s", r.stream.Seed, o, i, text[min(i, len(text)-1)])
		r.t.Fatalf(format+"\nagain: go test ./query -run TestHistoryModel -model.seed %d -model.streams 1", append(args, r.stream.Seed)...)
	}
	held := map[string]bool{} // by the events alone
	at := 0
	covered := map[uint64]bool{}
	for i := range lines {
		l := &lines[i]
		met.Lines++
		last := i == len(lines)-1 || lines[i+1].Offset != l.Offset
		if l.Kind == KindMark {
			r.mark(l, i, fail, covered, met)
			for m, out := range l.Media {
				s := r.oracle.AtOffset(l.Offset-1, o, m)
				if out.Certainty != Uncertain || (out.State == Present) != s.Present || last && (out.State == Present) != r.oracle.AtOffset(l.Offset, o, m).Present {
					fail(i, "behind a mark: %s: %+v, before it %+v", m, out, s)
				}
			}
			continue
		}
		if at == len(want) {
			fail(i, "it is no event of the oracle's")
		}
		w := want[at]
		at++
		got := oracle.Touch{Offset: l.Offset, Index: int(l.EventIndex) - 1, Kind: l.Kind, Medium: l.Medium, Proof: l.Proof != nil && *l.Proof, State: l.State == Present}
		if got != w {
			fail(i, "want %+v", w)
		}
		switch w.Kind {
		case KindCleared:
			met.Clears++
			clear(held)
		case KindReading:
			met.Readings++
		case KindCorrection:
			met.Corrections++
			if delete(held, w.Medium); w.State {
				held[w.Medium] = true
			}
			if l.State != stateName(w.State) {
				fail(i, "want %s", stateName(w.State))
			}
		case KindStored:
			held[w.Medium] = true
		default:
			delete(held, w.Medium)
		}
		read := l.Kind == KindReading || l.Kind == KindCorrection
		if read {
			r.historyReading(l, i, fail)
		}
		if raw && !read {
			met.Raw++
			r.original(l, o, i, fail)
		}
		for m, out := range l.Media {
			state := oracle.State{Present: out.State == Present, Confirmed: out.Certainty == Confirmed}
			if (out.Doubt == nil) != state.Confirmed || out.Evidence != nil {
				fail(i, "%s: %+v", m, out)
			}
			expect := oracle.State{Present: held[m]}
			if last || read { // all that a reading says counts at once
				expect = r.oracle.AtOffset(l.Offset, o, m)
			} else if out.Doubt.Cause == DoubtWithinBatch {
				met.Within++
			}
			if state != expect {
				fail(i, "%s: got %+v, doubt %s, want %+v, the batch goes on with it: %v", m, state, show(out.Doubt), expect, !last)
			}
			if state.Confirmed {
				met.Confirmed++
			}
		}
		for m, h := range held {
			if read && !last {
				break
			}
			if _, listed := l.Media[m]; h && !listed {
				fail(i, "%s is not listed", m)
			}
		}
	}
	if at != len(want) {
		fail(len(lines)-1, "%d events are missing, the first is %+v", len(want)-at, want[at])
	}
	for offset := want[0].Offset + 1; offset <= uint64(len(r.stream.Records)); offset++ {
		if r.oracle.Doubt(offset) > r.oracle.Doubt(offset-1) && !covered[offset] {
			fail(len(lines)-1, "no mark at %d", offset)
		}
	}
	r.pages(HistoryAsk{Name: r.name(o), Raw: raw}, lines, text, met)
}

// historyReading checks what a line tells of a reading.
func (r *recorded) historyReading(l *HistoryLine, i int, fail func(int, string, ...any)) {
	for _, one := range r.oracle.Readings() {
		if one.Begun == l.Offset {
			if l.Reading == nil || *l.Reading != (HistoryReading{Ended: one.Ended, Through: one.Through, Why: reading.AfterMark}) {
				fail(i, "want the reading %d to %d, ended at %d", one.Begun, one.Through, one.Ended)
			}
			return
		}
	}
	fail(i, "no reading began there")
}

// mark checks a line of a mark.
func (r *recorded) mark(l *HistoryLine, i int, fail func(int, string, ...any), covered map[uint64]bool, met *counts) {
	met.Marks++
	end := l.Offset
	if l.Mark.ExtendsTo != nil {
		met.Extended++
		end = l.Mark.ExtendsTo.Offset
	}
	if doubt := r.oracle.Doubt(l.Offset); doubt+1 < l.Offset {
		fail(i, "the oracle knows no mark here, the newest reaches %d", doubt)
	} else if l.Mark.Shadow {
		met.Shadows++
		if doubt != l.Offset {
			fail(i, "no shadow for the oracle: its mark reaches %d", doubt)
		}
	}
	for offset := l.Offset; offset <= end; offset++ {
		covered[offset] = true
	}
	for _, g := range r.oracle.Gaps() {
		if g.After >= l.Offset && g.After <= end {
			if got := l.Mark.Gap; got == nil || got.Cause != g.Cause || got.FirstOffsetAfter != g.After {
				fail(i, "want the gap %+v", g)
			}
			return
		}
	}
	if l.Mark.Gap != nil {
		fail(i, "no gap for the oracle")
	}
}

// original checks an original event against its line.
func (r *recorded) original(l *HistoryLine, o oracle.Object, i int, fail func(int, string, ...any)) {
	var e struct {
		Kind      *string `json:"event_type"`
		Key       *string `json:"object_key"`
		KeyBase64 []byte  `json:"object_key_base64"`
	}
	if err := json.Unmarshal(l.Event, &e); err != nil || !json.Valid(l.Batch) || !strings.Contains(string(l.Batch), `"timestamp":`) {
		fail(i, "%v", err)
	}
	key := string(e.KeyBase64)
	if e.Key != nil {
		key = *e.Key
	}
	if e.Kind != nil && *e.Kind != l.Kind || l.Kind != KindCleared && key != o.Key {
		fail(i, "the original event is another")
	}
}

// pages asks for parts at random and expects what the whole has there.
func (r *recorded) pages(ask HistoryAsk, lines []HistoryLine, whole []string, met *counts) {
	end := uint64(len(r.stream.Records))
	for range 6 {
		if len(lines) == 0 {
			break
		}
		a := ask
		low, high := 0, len(lines)
		if r.rng.IntN(2) == 0 {
			a.Span.From = When{Kind: AtOffset, Offset: 1 + r.rng.Uint64N(end)}
			low, _ = slices.BinarySearchFunc(lines, a.Span.From.Offset, offsetOf)
		}
		if r.rng.IntN(2) == 0 {
			a.Span.To = When{Kind: AtOffset, Offset: 1 + r.rng.Uint64N(end)}
			high, _ = slices.BinarySearchFunc(lines, a.Span.To.Offset+1, offsetOf)
		}
		high = max(low, high)
		rest := HistoryNote{}
		a.Notes = r.rng.IntN(2) == 0
		if r.rng.IntN(3) > 0 {
			a.Limit = 1 + r.rng.Uint64N(uint64(len(lines))+2)
			if n := low + int(a.Limit); a.Span.From.Kind == Latest && high-low > int(a.Limit) {
				low = high - int(a.Limit)
				rest.Older = lines[low-1].Offset
			} else if n < high {
				high = n
				rest.Newer = lines[high].Offset
			}
		}
		var got []string
		var notes []HistoryNote
		r.must(r.e.History(r.t.Context(), &a, nil, func(v any) error {
			if n, ok := v.(*HistoryNote); ok {
				notes = append(notes, *n)
				return nil
			}
			b, err := AppendJSON(nil, v)
			got = append(got, string(b))
			return err
		}))
		if !slices.Equal(got, whole[low:high]) {
			r.t.Fatalf("seed %d: %+v\ngot  %s\nwant %s", r.stream.Seed, a, strings.Join(got, "\n     "), strings.Join(whole[low:high], "\n     "))
		}
		if a.Notes && (len(notes) != 2 || notes[0].Kind != NoteObject || notes[0].First == nil || notes[1].Kind != NoteRest || notes[1].Older != rest.Older || notes[1].Newer != rest.Newer) {
			r.t.Fatalf("seed %d: %+v\nnotes %+v, want %+v", r.stream.Seed, a, notes, rest)
		}
		met.Pages++
	}
}

func offsetOf(l HistoryLine, offset uint64) int {
	switch {
	case l.Offset < offset:
		return -1
	case l.Offset > offset:
		return 1
	}
	return 0
}

// histories: without a backend, the histories of all backends come one after the other, and nothing of a key never seen.
func (r *recorded) histories() {
	objects := r.oracle.Objects()
	if len(objects) == 0 {
		return
	}
	o := objects[r.rng.IntN(len(objects))]
	ask := HistoryAsk{Name: Name{Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}}
	_, got := r.lines(ask)
	var want []string
	for _, other := range objects {
		if other.Tenant == o.Tenant && other.Key == o.Key {
			_, text := r.lines(HistoryAsk{Name: r.name(other)})
			want = append(want, text...)
		}
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("seed %d: %q of any backend: %d lines, want %d", r.stream.Seed, o, len(got), len(want))
	}
	ask.Key = Bytes("no such key")
	if _, got := r.lines(ask); len(got) > 0 {
		r.t.Fatalf("seed %d: a key never seen: %s", r.stream.Seed, got[0])
	}
	ask.Key, ask.Tenant, ask.Notes = Bytes(o.Key), Bytes("nobody"), true
	r.must(r.e.History(r.t.Context(), &ask, nil, func(v any) error {
		if n, ok := v.(*HistoryNote); !ok || n.Kind != NoteNever || len(n.Elsewhere) == 0 {
			r.t.Fatalf("seed %d: %q of another tenant: %+v", r.stream.Seed, o, v)
		}
		return nil
	}))
}
