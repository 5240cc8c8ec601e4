package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// newRecorded records the random stream of a seed.
func newRecorded(t *testing.T, seed uint64) *recorded {
	r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 7)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
	r.record()
	return r
}

// randomMoment draws a moment of any kind, and how the oracle answers there.
func (r *recorded) randomMoment() (When, func(oracle.Object, string) oracle.State) {
	times := r.oracle.Times()
	switch n := r.rng.IntN(10); {
	case n == 0:
		return When{}, r.oracle.Latest
	case n < 5 && len(times) > 0:
		ms := times[r.rng.IntN(len(times))]
		return When{Kind: AtTime, Ms: ms}, func(o oracle.Object, m string) oracle.State { return r.oracle.AtTime(ms, o, m) }
	}
	offset := 1 + r.rng.Uint64N(uint64(len(r.stream.Records)))
	return When{Kind: AtOffset, Offset: offset}, func(o oracle.Object, m string) oracle.State { return r.oracle.AtOffset(offset, o, m) }
}

// list lists objects, each read back from its line, and checks their order.
func (r *recorded) list(q ObjectsQuestion) []*ObjectOut {
	r.t.Helper()
	var out []*ObjectOut
	r.must(r.e.Objects(r.t.Context(), q, nil, func(l *ObjectLine) error {
		line := l.AppendJSON(nil)
		var compact bytes.Buffer
		if err := json.Compact(&compact, line); err != nil || compact.String() != string(line) {
			return fmt.Errorf("no compact JSON: %s", line)
		}
		o := &ObjectOut{}
		if err := json.Unmarshal(line, o); err != nil {
			return err
		}
		if have, _ := json.Marshal(&l.Answer().Answer); !sameJSON(have, line) {
			return fmt.Errorf("the line\n%s\nis not the answer\n%s", line, have)
		}
		out = append(out, o)
		return nil
	}))
	if !slices.IsSortedFunc(out, func(a, b *ObjectOut) int { return compareNames(&a.Name, &b.Name) }) {
		r.t.Fatalf("seed %d: objects are not in order", r.stream.Seed)
	}
	return out
}

// sameJSON compares an answer with a line but for its group.
func sameJSON(answer, line []byte) bool {
	var a, b map[string]any
	if json.Unmarshal(answer, &a) != nil || json.Unmarshal(line, &b) != nil {
		return false
	}
	delete(b, "group_id")
	delete(b, "group_id_base64")
	return reflect.DeepEqual(a, b)
}

func compareNames(a, b *Name) int {
	if c := bytes.Compare([]byte(a.Source), []byte(b.Source)); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Backend, b.Backend); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Tenant, b.Tenant); c != 0 {
		return c
	}
	return bytes.Compare(a.Key, b.Key)
}

// TestObjectsModel holds listings against the oracle, object by object and medium by medium, at random moments of every kind.
func TestObjectsModel(t *testing.T) {
	answers, confirmed, listed := 0, 0, 0
	for n := range *modelStreams {
		r := newRecorded(t, *modelSeed+uint64(n))
		for range 12 {
			w, want := r.randomMoment()
			all := r.list(ObjectsQuestion{At: w, State: AnyState})
			listed += len(all)
			found := map[oracle.Object]*ObjectOut{}
			for _, o := range all {
				found[oracle.Object{Backend: string(o.Backend), Tenant: string(o.Tenant), Key: string(o.Key)}] = o
			}
			if len(found) != len(all) {
				t.Fatalf("seed %d, %+v: an object is listed twice", r.stream.Seed, w)
			}
			for _, obj := range r.oracle.Objects() {
				o := found[obj]
				delete(found, obj)
				for _, medium := range r.oracle.Media(obj) {
					expect := want(obj, medium)
					if o == nil {
						if expect.Present {
							t.Fatalf("seed %d, %+v: %q is present on %s and not listed", r.stream.Seed, w, obj, medium)
						}
						continue
					}
					m, known := o.Media[medium]
					if !known && (expect.Present || medium == "cpu" || medium == "disk") {
						t.Fatalf("seed %d, %+v: %q has no %s", r.stream.Seed, w, obj, medium)
					}
					if !known {
						continue
					}
					if have := (oracle.State{Present: m.State == Present, Confirmed: m.Certainty == Confirmed}); have != expect {
						t.Fatalf("seed %d, %+v: %q on %s: %+v, want %+v", r.stream.Seed, w, obj, medium, have, expect)
					}
					answers++
					if expect.Confirmed {
						confirmed++
					}
				}
			}
			for obj := range found {
				t.Fatalf("seed %d, %+v: %q was never heard of", r.stream.Seed, w, obj)
			}
			r.sameAsLookup(w, all)
			r.filters(w, all)
		}
		r.close()
	}
	t.Logf("from seed %d: %d objects listed, %d answers, %d confirmed", *modelSeed, listed, answers, confirmed)
	if confirmed == 0 || confirmed == answers {
		t.Fatal("the streams test too little")
	}
}

// sameAsLookup: Lookup says the same of each, evidence and doubt included.
func (r *recorded) sameAsLookup(w When, all []*ObjectOut) {
	var questions []Question
	for _, o := range all {
		questions = append(questions, Question{o.Name})
	}
	answers, err := r.e.Lookup(r.t.Context(), questions, w)
	r.must(err)
	for i, a := range answers {
		a.AsOf.AgeMs, all[i].AsOf.AgeMs = nil, nil
		have, _ := json.Marshal(&all[i].Answer)
		want, _ := json.Marshal(a)
		if string(have) != string(want) {
			r.t.Fatalf("seed %d, %+v\nobjects %s\nlookup  %s", r.stream.Seed, w, have, want)
		}
	}
}

// filters: each filter gives what is left of the whole list, and counting counts it.
func (r *recorded) filters(w When, all []*ObjectOut) {
	q := ObjectsQuestion{At: w, State: []string{"", Present, Absent, AnyState}[r.rng.IntN(4)], Certainty: []string{"", Confirmed, Uncertain}[r.rng.IntN(3)]}
	q.Medium = []string{"", "", "cpu", "disk", "nvm\u00e9", "never"}[r.rng.IntN(6)]
	if len(all) > 0 {
		o := all[r.rng.IntN(len(all))]
		if r.rng.IntN(3) == 0 {
			q.Prefix = o.Key[:r.rng.IntN(len(o.Key)+1)]
		}
		if r.rng.IntN(3) == 0 {
			q.Group = append(Bytes{}, o.Group...)
		}
		if r.rng.IntN(3) == 0 {
			q.Tenant = o.Tenant
		}
		if r.rng.IntN(3) == 0 {
			q.Backend = o.Backend
		}
		if r.rng.IntN(3) == 0 {
			q.Source = "model"
		}
	}
	var want []*ObjectOut
	for _, o := range all {
		present, certainty := o.Present, o.Certainty
		if m, known := o.Media[q.Medium]; known {
			present, certainty = m.State == Present, m.Certainty
		} else if q.Medium != "" {
			present, certainty = false, "" // that of a medium never seen is not in the list
		}
		if q.State != AnyState && present != (q.State != Absent) || !bytes.HasPrefix(o.Key, q.Prefix) ||
			q.Group != nil && (o.Group == nil || !bytes.Equal(o.Group, q.Group)) ||
			q.Tenant != nil && !bytes.Equal(o.Tenant, q.Tenant) || q.Backend != nil && !bytes.Equal(o.Backend, q.Backend) {
			continue
		}
		if q.Certainty != "" && certainty == "" {
			return // cannot be told
		}
		if q.Certainty == "" || certainty == q.Certainty {
			want = append(want, o)
		}
	}
	got := r.list(q)
	r.sameNames(q, got, want)

	counts, err := r.e.CountObjects(r.t.Context(), q, nil)
	r.must(err)
	sum := uint64(0)
	for _, c := range counts.Tenants {
		sum += c.Objects
	}
	present := map[string]uint64{}
	sure := uint64(0)
	for _, o := range got {
		for name, m := range o.Media {
			if m.State == Present {
				present[name]++
			}
		}
		certainty := o.Certainty
		if q.Medium != "" {
			certainty = o.Media[q.Medium].Certainty
		}
		if certainty == Confirmed {
			sure++
		}
	}
	if counts.Objects != uint64(len(want)) || sum != counts.Objects || counts.Confirmed != sure || counts.Confirmed+counts.Uncertain != counts.Objects {
		r.t.Fatalf("seed %d, %+v: counts %+v, want %d, %d confirmed", r.stream.Seed, q, counts, len(want), sure)
	}
	for _, m := range counts.Media {
		if m.Objects != present[m.Medium] {
			r.t.Fatalf("seed %d, %+v: counts %+v, want %v", r.stream.Seed, q, counts, present)
		}
	}

	// A limit, and going on behind it, page by page.
	var paged []*ObjectOut
	q.Limit = 1 + r.rng.Uint64N(3)
	for {
		page := r.list(q)
		if uint64(len(page)) > q.Limit {
			r.t.Fatalf("seed %d: %d objects, limit %d", r.stream.Seed, len(page), q.Limit)
		}
		paged = append(paged, page...)
		if uint64(len(page)) < q.Limit {
			break
		}
		n := page[len(page)-1].Name
		q.After = &n
	}
	r.sameNames(q, paged, want)
}

func (r *recorded) sameNames(q ObjectsQuestion, got, want []*ObjectOut) {
	r.t.Helper()
	if !slices.EqualFunc(got, want, func(a, b *ObjectOut) bool { return compareNames(&a.Name, &b.Name) == 0 }) {
		r.t.Fatalf("seed %d, %+v: got %d objects, want %d", r.stream.Seed, q, len(got), len(want))
	}
}

// placements are the media that objects are present on by their last known state.
func placements(all []*ObjectOut) map[string]string {
	out := map[string]string{}
	for _, o := range all {
		for name, m := range o.Media {
			if m.State == Present {
				out[fmt.Sprintf("%q %q %q %q %s", o.Source, o.Backend, o.Tenant, o.Key, name)] = m.Certainty
			}
		}
	}
	return out
}

// TestDiffModel: the objects at one moment and the changes up to another give the objects at that other, at random pairs of moments,
// with clears, gaps and restarts, and with so few objects looked up at once that nearly every change comes in a later part.
func TestDiffModel(t *testing.T) {
	pairs, changes, parts := 0, 0, 0
	tries := max(40, usualPairs / *modelStreams) // every second one goes backwards, and is refused
	for n := range *modelStreams {
		r := newRecorded(t, *modelSeed+uint64(n))
		for range tries {
			n, met := r.diffPair()
			if !met {
				continue
			}
			pairs, changes = pairs+1, changes+n
			if r.inParts {
				parts++
			}
		}
		r.close()
	}
	t.Logf("from seed %d: %d pairs, %d changes, %d pairs in several parts", *modelSeed, pairs, changes, parts)
	if changes == 0 || parts == 0 {
		t.Fatal("nothing was compared")
	}
}

// diffPair compares two random moments; met is false where they are no pair.
func (r *recorded) diffPair() (changes int, met bool) {
	r.t.Helper()
	from, wantFrom := r.randomMoment()
	to, wantTo := r.randomMoment()
	if from.Kind == Latest {
		return 0, false
	}
	q := DiffQuestion{From: from, To: to}
	if m := r.rng.IntN(4); m < 2 {
		q.Medium = []string{"cpu", "disk"}[m]
	}
	chunk := 1 + r.rng.IntN(20)
	if r.rng.IntN(4) == 0 {
		chunk = diffChunk
	}
	var got []*ChangeOut
	sum, err := r.e.diff(r.t.Context(), q, chunk, nil, func(l *ChangeLine) error {
		line := l.AppendJSON(nil)
		var compact bytes.Buffer
		if err := json.Compact(&compact, line); err != nil || compact.String() != string(line) {
			return fmt.Errorf("no compact JSON: %s", line)
		}
		c := &ChangeOut{}
		got = append(got, c)
		return json.Unmarshal(line, c)
	})
	if isUsage(err) {
		return 0, false // the other way round
	}
	r.must(err)
	media := placements(r.list(ObjectsQuestion{At: from, State: AnyState}))
	b := placements(r.list(ObjectsQuestion{At: to, State: AnyState}))
	for _, c := range got {
		r.change(&q, c, media, wantFrom, wantTo)
	}
	for place := range b {
		if q.Medium != "" && !bytes.HasSuffix([]byte(place), []byte(" "+q.Medium)) {
			continue
		}
		if _, have := media[place]; !have {
			r.t.Fatalf("seed %d, %+v: %s is missing", r.stream.Seed, q, place)
		}
	}
	for place := range media {
		if q.Medium != "" && !bytes.HasSuffix([]byte(place), []byte(" "+q.Medium)) {
			continue
		}
		if _, have := b[place]; !have {
			r.t.Fatalf("seed %d, %+v: %s is left over", r.stream.Seed, q, place)
		}
	}
	r.sums(&q, sum, got)
	r.inParts = uint64(chunk) < sum.Events
	return len(got), true
}

// change applies one change to what is present, and holds its certainties against the oracle.
func (r *recorded) change(q *DiffQuestion, c *ChangeOut, present map[string]string, from, to func(oracle.Object, string) oracle.State) {
	r.t.Helper()
	place := fmt.Sprintf("%q %q %q %q %s", c.Name.Source, c.Name.Backend, c.Name.Tenant, c.Name.Key, c.Medium)
	obj := oracle.Object{Backend: string(c.Name.Backend), Tenant: string(c.Name.Tenant), Key: string(c.Name.Key)}
	if _, have := present[place]; have == (c.Change == Gained) {
		r.t.Fatalf("seed %d, %+v: %s is %s, and it was present: %v", r.stream.Seed, *q, place, c.Change, have)
	}
	if c.Change == Gained {
		present[place] = c.CertaintyTo
	} else {
		delete(present, place)
	}
	for _, end := range []struct {
		certainty string
		doubt     *Doubt
		want      oracle.State
		present   bool
	}{{c.CertaintyFrom, c.DoubtFrom, from(obj, c.Medium), c.Change == Lost}, {c.CertaintyTo, c.DoubtTo, to(obj, c.Medium), c.Change == Gained}} {
		if (oracle.State{Present: end.present, Confirmed: end.certainty == Confirmed}) != end.want || (end.doubt == nil) != end.want.Confirmed {
			r.t.Fatalf("seed %d, %+v: %s %s: %s (%s), want %+v", r.stream.Seed, *q, place, c.Change, end.certainty, show(end.doubt), end.want)
		}
	}
	if c.Event == nil || c.Change == Gained && c.Event.Cause != "event" && (r.reads == nil || c.Event.Cause != "reconciliation") {
		r.t.Fatalf("seed %d, %+v: %s %s: event %s", r.stream.Seed, *q, place, c.Change, show(c.Event))
	}
}

// sums holds the summary against the changes.
func (r *recorded) sums(q *DiffQuestion, s *DiffSummary, changes []*ChangeOut) {
	r.t.Helper()
	var want ChangeTally
	objects := map[string]bool{}
	groups := map[string]uint64{}
	tenants := map[string]uint64{}
	media := map[string]uint64{}
	for _, c := range changes {
		want.change(c.Change == Gained, c.CertaintyTo == Confirmed)
		objects[fmt.Sprintf("%q %q %q", c.Name.Backend, c.Name.Tenant, c.Name.Key)] = true
		tenants[fmt.Sprintf("%q %q", c.Name.Backend, c.Name.Tenant)]++
		media[c.Medium]++
		if c.Group != nil {
			groups[string(c.Group)]++
		}
	}
	var sum ChangeTally
	for _, t := range s.Tenants {
		sum.add(&t.ChangeTally)
		if n := tenants[fmt.Sprintf("%q %q", t.Name.Backend, t.Name.Tenant)]; n != t.all() {
			r.t.Fatalf("seed %d: tenant %+v, want %d", r.stream.Seed, t, n)
		}
	}
	for _, g := range s.Groups {
		if groups[string(g.Group)] != g.all() {
			r.t.Fatalf("seed %d: group %+v", r.stream.Seed, g)
		}
	}
	for _, m := range s.Media {
		if media[m.Medium] != m.all() {
			r.t.Fatalf("seed %d: medium %+v", r.stream.Seed, m)
		}
	}
	if s.ChangeTally != want || sum != want || s.Objects != uint64(len(objects)) || len(s.Groups) != len(groups) {
		r.t.Fatalf("seed %d, %+v: summary %+v, want %+v of %d objects", r.stream.Seed, *q, s, want, len(objects))
	}
	b, err := json.Marshal(s)
	r.must(err)
	var back DiffSummary
	r.must(json.Unmarshal(b, &back))
	again, err := json.Marshal(&back)
	r.must(err)
	if string(again) != string(b) {
		r.t.Fatalf("the summary\n%s\nread back is\n%s", b, again)
	}
}

func isUsage(err error) bool {
	_, usage := err.(*UsageError)
	return usage
}

// TestDiffLimit: a limit cuts the changes, not the summary.
func TestDiffLimit(t *testing.T) {
	r := newRecorded(t, *modelSeed)
	defer r.close()
	q := DiffQuestion{From: When{Kind: AtOffset, Offset: 1}}
	count := func(limit uint64, noSummary bool) (n uint64, s *DiffSummary) {
		q.Limit, q.NoSummary = limit, noSummary
		s, err := r.e.diff(t.Context(), q, 2, nil, func(*ChangeLine) error { n++; return nil })
		r.must(err)
		return n, s
	}
	all, whole := count(0, false)
	if all < 2 {
		t.Fatalf("seed %d: only %d changes", r.stream.Seed, all)
	}
	if n, s := count(1, false); n != 1 || s.ChangeTally != whole.ChangeTally {
		t.Errorf("limit 1: %d changes, summary %+v, want %+v", n, s.ChangeTally, whole.ChangeTally)
	}
	if n, _ := count(1, true); n != 1 {
		t.Errorf("limit 1 without a summary: %d changes", n)
	}
	if _, err := r.e.Diff(t.Context(), DiffQuestion{}, nil, nil); !isUsage(err) {
		t.Errorf("without a moment: %v", err)
	}
	if _, err := r.e.Diff(t.Context(), DiffQuestion{From: When{Kind: AtOffset, Offset: 2}, To: When{Kind: AtOffset, Offset: 1}}, nil, nil); !isUsage(err) {
		t.Errorf("the wrong way round: %v", err)
	}
	if s, err := r.e.Diff(t.Context(), DiffQuestion{From: When{Kind: AtOffset, Offset: 2}, To: When{Kind: AtOffset, Offset: 2}}, nil, nil); err != nil || s.Events != 0 || s.all() != 0 {
		t.Errorf("nothing between: %+v, %v", s, err)
	}
}
