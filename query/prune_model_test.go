package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// TestPruneModel: from the horizon on, every answer is what it was before the journal was pruned, also behind a rebuild, another start, and
// when it is pruned again; before it, every question gets the error that names it.
func TestPruneModel(t *testing.T) {
	met := map[string]int{}
	streams := pruneStreams()
	for n := range streams {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 23)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		r.checkpoints = 1 + r.rng.Uint64N(200)
		if r.rng.IntN(3) > 0 {
			r.reads = &reads{often: 3 + r.rng.IntN(15), silence: 2 + r.rng.IntN(20)}
		}
		r.record()
		r.pruned(met)
		r.close()
	}
	t.Logf("from seed %d: %v", *modelSeed, met)
	for _, what := range []string{"prunes", "again", "lookups", "objects", "changes", "history", "lifetimes", "gaps", "refused", "forgotten", "forgets", "doubts", "halves"} {
		if met[what] == 0 && streams >= 20 {
			t.Errorf("no %s: the streams test too little", what)
		}
	}
}

// pruneStreams is how many streams are pruned: each is asked about again and again.
func pruneStreams() int { return (*modelStreams + 3) / 4 }

// pruned prunes the journal up to random checkpoints, and compares all that it says.
func (r *recorded) pruned(met map[string]int) {
	end := r.j.Durable()
	r.fixClock()
	v, err := r.x.View()
	r.must(err)
	r.points, err = v.Points()
	r.must(errors.Join(err, v.Close()))
	whole := r.all(0, end, nil, nil)
	for range 1 + r.rng.IntN(3) {
		before := r.j.Horizon().Offset
		h, err := r.prune(before+1+r.rng.Uint64N(end), end, whole, met)
		if errors.Is(err, index.ErrNothingToPrune) {
			continue
		}
		r.must(err)
		if met["prunes"]++; before > 0 {
			met["again"]++
		}
		r.same(whole, h.Offset, end, met)
		switch r.rng.IntN(3) {
		case 0:
			r.must(r.x.Rebuild(r.t.Context(), nil))
		case 1:
			r.close()
			r.open()
		case 2:
			r.must(r.j.Seal(r.t.Context()))
			r.close()
			r.must(index.Remove(modelDir, r.indexOptions()))
			r.open()
			r.must(r.x.CatchUp(r.t.Context(), nil))
		}
		r.fixClock()
		r.same(whole, h.Offset, end, met)
	}
	r.forget(whole, end, met)
}

// prune prunes, at times in two: what is said between the journal's part and the index's is what is said behind both.
func (r *recorded) prune(to, end uint64, whole map[string]string, met map[string]int) (journal.Horizon, error) {
	if r.rng.IntN(2) == 0 {
		return r.x.Prune(r.t.Context(), to, index.BaselineOptions{}, nil)
	}
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	h, err := r.x.Prune(ctx, to, index.BaselineOptions{}, func(step string, _, _ uint64) {
		if step != "writing the baseline" {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		return h, err
	}
	met["halves"]++
	half := r.all(h.Offset, end, whole, nil)
	if err := r.x.Trim(r.t.Context(), nil); err != nil {
		return h, err
	}
	got := r.all(h.Offset, end, whole, nil)
	for _, k := range slices.Sorted(maps.Keys(half)) {
		if now, asked := got[k]; asked && now != half[k] {
			r.t.Fatalf("seed %d, pruned up to %d, %s:\nbefore the index is trimmed %s\nbehind it                   %s", r.stream.Seed, h.Offset, k, half[k], got[k])
		}
	}
	return h, nil
}

// forget prunes with ForgetRemoved: states stay as they were, what is confirmed was confirmed before or is by a reading or a clear, and
// what is not known any more says so.
func (r *recorded) forget(whole map[string]string, end uint64, met map[string]int) {
	before := r.j.Horizon().Offset
	h, err := r.x.Prune(r.t.Context(), max(before, r.rng.Uint64N(end+1)), index.BaselineOptions{ForgetRemoved: true}, nil)
	if errors.Is(err, index.ErrNothingToPrune) {
		return
	}
	r.must(err)
	if h.Forgotten != h.Offset {
		r.t.Fatalf("seed %d: %+v", r.stream.Seed, h)
	}
	objects := append(r.oracle.Objects(), oracle.Object{Backend: "b0", Tenant: "default", Key: "never"})
	for _, w := range r.moments(h.Offset, end) {
		for _, o := range objects {
			answers, err := r.e.Lookup(r.t.Context(), []Question{{r.name(o)}}, w)
			if pruned := (*PrunedError)(nil); errors.As(err, &pruned) {
				continue
			}
			r.must(err)
			was, ok := whole[fmt.Sprintf("%+v lookup %q", w, o)]
			if !ok {
				continue // a moment that was not asked about
			}
			old := r.answerOf(was)
			for medium, m := range answers[0].Media {
				wm := old.Media[medium]
				if m.State != wm.State || m.Certainty == Confirmed && wm.Certainty != Confirmed {
					r.t.Fatalf("seed %d, forgotten to %d, %+v, %q on %s:\ngot  %s\nwas %s", r.stream.Seed, h.Offset, w, o, medium, mustJSON(answers[0]), was)
				}
				if m.Doubt != nil && m.Doubt.Cause == DoubtForgotten {
					if met["doubts"]++; m.State != Absent || m.Doubt.Offset != h.Offset {
						r.t.Fatalf("seed %d: %s", r.stream.Seed, mustJSON(answers[0]))
					}
				}
			}
		}
	}
	met["forgets"]++
}

func (r *recorded) fixClock() {
	r.e.Now = func() time.Time { return time.UnixMilli(1_900_000_000_000) }
}

// same compares all that is said from the horizon on with what was said when the journal was whole.
func (r *recorded) same(whole map[string]string, horizon, end uint64, met map[string]int) {
	r.t.Helper()
	got := r.all(horizon, end, whole, met)
	for _, k := range slices.Sorted(maps.Keys(whole)) {
		if _, ok := got[k]; !ok && strings.HasPrefix(k, "history ") && k >= historyKey(horizon+1, oracle.Object{}, "")[:28] {
			r.t.Fatalf("seed %d, horizon %d: %s is gone: %s", r.stream.Seed, horizon, k, whole[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if w, ok := whole[k]; !ok || w != got[k] {
			r.t.Fatalf("seed %d, horizon %d, %s:\ngot  %s\nwant %s\nagain: go test ./query -run TestPruneModel -model.seed %d -model.streams 1", r.stream.Seed, horizon, k, got[k], w, r.stream.Seed)
		}
	}
}

// all is what is said at moments from an offset on, each answer under its question: of a whole journal, where whole is nil, or of one that
// begins at the offset. met counts the answers.
func (r *recorded) all(from, end uint64, whole map[string]string, met map[string]int) map[string]string {
	out := map[string]string{}
	count := func(what string, n int) {
		if met != nil {
			met[what] += n
		}
	}
	objects := append(r.oracle.Objects(), oracle.Object{Backend: "b0", Tenant: "default", Key: "never"}, oracle.Object{Backend: "b9", Tenant: "t9", Key: "never"})
	var questions []Question
	for _, o := range objects {
		questions = append(questions, Question{r.name(o)})
	}
	moments := r.moments(from, end)
	forgotten := map[oracle.Object]bool{}
	for _, w := range moments {
		answers, err := r.e.Lookup(r.t.Context(), questions, w)
		var pruned *PrunedError
		if errors.As(err, &pruned) {
			if whole == nil || w.Kind == AtOffset && w.Offset >= from || w.Kind == Latest || pruned.Horizon.Offset != from {
				r.t.Fatalf("seed %d, %+v, horizon %d: %v", r.stream.Seed, w, from, err)
			}
			count("refused", 1)
			continue
		}
		r.must(err)
		if w.Kind == AtOffset && w.Offset < from {
			r.t.Fatalf("seed %d: offset %d is answered, the horizon is %d", r.stream.Seed, w.Offset, from)
		}
		for i, a := range answers {
			out[fmt.Sprintf("%+v lookup %q", w, objects[i])] = string(mustJSON(a))
		}
		count("lookups", len(answers))
		line := func(o oracle.Object) string { return fmt.Sprintf("%+v objects %q", w, o) }
		r.must(r.e.Objects(r.t.Context(), ObjectsQuestion{At: w, State: AnyState}, nil, func(l *ObjectLine) error {
			out[line(oracle.Object{Backend: string(l.at.Backend), Tenant: string(l.at.Tenant), Key: string(l.key)})] = string(l.AppendJSON(nil))
			count("objects", 1)
			return nil
		}))
		for _, o := range objects {
			was, listed := whole[line(o)]
			if _, is := out[line(o)]; !listed || is {
				continue
			}
			forgotten[o] = true
			count("forgotten", 1)
			for _, m := range r.answerOf(was).Media {
				if m.State != Absent || m.Evidence == nil || m.Evidence.Cause != "cleared" && m.Evidence.Cause != "reconciliation" {
					r.t.Fatalf("seed %d, horizon %d, %+v: %q is not listed any more; it was %s", r.stream.Seed, from, w, o, was)
				}
			}
		}
	}
	r.changes(moments, whole == nil, out, count)
	for i, o := range objects {
		if forgotten[o] {
			for k := range whole {
				if strings.HasPrefix(k, "history ") && strings.Contains(k, fmt.Sprintf(" %q ", o)) {
					out[k] = whole[k]
				}
			}
			continue // what touched it before an event of its own is not its history any more
		}
		lines, text := r.lines(HistoryAsk{Name: questions[i].Name})
		for n := range lines {
			l := &lines[n]
			out[historyKey(l.Offset, o, fmt.Sprint(l.EventIndex, l.Kind, l.Medium))] = text[n]
			count("history", 1)
		}
	}
	for _, at := range []uint64{1, end / 3, end / 2, end - 1} {
		if at > 0 && at >= from {
			q := &LifetimesQuery{Span: Span{From: When{Kind: AtOffset, Offset: at + 1}}, By: "group", Doubtful: true}
			r.must(r.e.Lifetimes(r.t.Context(), q, nil, func(l *LifetimesOut) error {
				out[fmt.Sprintf("lifetimes from %d %s %s %d", at+1, mustJSON(l.Medium), mustJSON(l.GroupBase64), l.Others)] = string(mustJSON(l))
				count("lifetimes", 1)
				return nil
			}))
		}
	}
	horizon := r.j.Horizon()
	cut := horizon.Cut(1)
	r.must(r.e.Gaps(r.t.Context(), &GapsQuery{}, nil, func(g *GapOut) error {
		if whole != nil && g.LastOffsetBefore < cut && g.LastOffsetBefore > 0 {
			var was GapOut
			r.must(json.Unmarshal([]byte(whole[fmt.Sprintf("gap %d %s", g.FirstOffsetAfter, g.Cause)]), &was))
			if g.InDoubt != nil || was.InDoubt == nil {
				r.t.Fatalf("seed %d: what a loss put in doubt before the horizon is known: %s", r.stream.Seed, mustJSON(g))
			}
			g.InDoubt = was.InDoubt
		}
		out[fmt.Sprintf("gap %d %s", g.FirstOffsetAfter, g.Cause)] = string(mustJSON(g))
		count("gaps", 1)
		return nil
	}))
	return out
}

// moments are some of all, the same each time, and those around the horizon.
func (r *recorded) moments(horizon, end uint64) (moments []When) {
	rng := rand.New(rand.NewPCG(r.stream.Seed, 29))
	times := r.oracle.Times()
	for o := uint64(1); o <= end; o++ {
		if rng.Uint64N(end) < 50 || horizon == 0 && r.around(o) || horizon > 0 && o+2 > horizon && o < horizon+3 {
			moments = append(moments, When{Kind: AtOffset, Offset: o})
		}
	}
	for _, ms := range times {
		if rng.IntN(len(times)) < 30 {
			moments = append(moments, When{Kind: AtTime, Ms: ms})
		}
	}
	return append(moments, When{})
}

// around reports whether an offset lies at a place up to which the journal can be pruned.
func (r *recorded) around(o uint64) bool {
	return slices.ContainsFunc(r.points, func(p index.Point) bool { return o+2 > p.Offset && o < p.Offset+3 })
}

// historyKey is such that those of larger offsets are larger.
func historyKey(offset uint64, o oracle.Object, rest string) string {
	return fmt.Sprintf("history %020d %q %s", offset, o, rest)
}

func (r *recorded) answerOf(line string) *Answer {
	a := &Answer{}
	r.must(json.Unmarshal([]byte(line), a))
	return a
}

// changes adds what diff says of some pairs of moments.
func (r *recorded) changes(moments []When, whole bool, out map[string]string, count func(string, int)) {
	if whole {
		r.diffs = nil
		for i := range moments {
			for _, k := range []int{i + 3, i + 40, len(moments) - 1} {
				if i < k && k < len(moments) && (moments[i].Kind == moments[k].Kind || k == len(moments)-1) && r.rng.IntN(2) == 0 {
					r.diffs = append(r.diffs, DiffQuestion{From: moments[i], To: moments[k]})
				}
			}
		}
	}
	for _, q := range r.diffs {
		name := fmt.Sprintf("diff %+v to %+v", q.From, q.To)
		sum, err := r.e.Diff(r.t.Context(), q, nil, func(l *ChangeLine) error {
			line := string(l.AppendJSON(nil))
			out[name+" "+line] = line
			count("changes", 1)
			return nil
		})
		if pruned := (*PrunedError)(nil); isUsage(err) || !whole && errors.As(err, &pruned) {
			if q.From.Kind == AtOffset && q.From.Offset >= r.j.Horizon().Offset && !isUsage(err) {
				r.t.Fatalf("seed %d, %s: %v", r.stream.Seed, name, err)
			}
			continue
		}
		r.must(err)
		out[name] = string(mustJSON(sum))
	}
}
