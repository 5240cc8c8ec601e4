package query

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// expected is a line of lifetimes as it follows from a list of lives.
type expected struct {
	count, doubtful, untimed, open, openDoubtful uint64
	by                                           map[string]uint64
	took, again                                  []int64
	againCount, againDoubtful, never             uint64
}

func (x *expected) take(l *oracle.Life, all bool) {
	if l.End == 0 {
		x.open++
		if !l.Took.Sure {
			x.openDoubtful++
		}
		return
	}
	x.count++
	x.by[l.How]++
	if !l.Took.Sure {
		x.doubtful++
	}
	if l.Took.Sure || all {
		if l.Took.Timed {
			x.took = append(x.took, l.Took.Ms)
		} else {
			x.untimed++
		}
	}
	switch {
	case l.How == oracle.Upsert:
	case l.Next == 0:
		x.never++
	default:
		x.againCount++
		if !l.Again.Sure {
			x.againDoubtful++
		}
		if (l.Again.Sure || all) && l.Again.Timed {
			x.again = append(x.again, l.Again.Ms)
		}
	}
}

func (x *expected) text() string {
	return fmt.Sprint(x.count, x.doubtful, x.untimed, x.open, x.openDoubtful, x.by[oracle.CopyLeft], x.by[oracle.Removed], x.by[oracle.Upsert], x.by[oracle.Cleared],
		len(x.took), x.againCount, x.againDoubtful, x.never, len(x.again))
}

func textOf(l *LifetimesOut) string {
	b, a := &l.EndedBy, &l.StoredAgain
	return fmt.Sprint(l.Count, l.Doubtful, l.Untimed, l.Open, l.OpenDoubtful, b.EvictedCopyLeft, b.Removed, b.Upsert, b.Cleared,
		l.Measured, a.Count, a.Doubtful, a.Never, a.Measured)
}

// checkDurations holds what is shown of durations against the durations.
func checkDurations(d *DurationOut, exact []int64) error {
	slices.Sort(exact)
	total := uint64(0)
	for i, b := range d.Histogram {
		low := int64(-1)
		if i > 0 {
			low = d.Histogram[i-1].LeMs
		}
		total += b.Count
		in := uint64(0)
		for _, ms := range exact {
			if low < ms && ms <= b.LeMs {
				in++
			}
		}
		if in != b.Count {
			return fmt.Errorf("%d durations in (%d, %d], want %d", b.Count, low, b.LeMs, in)
		}
	}
	if total != uint64(len(exact)) {
		return fmt.Errorf("%d durations in the histogram, want %d", total, len(exact))
	}
	for p, got := range map[float64]*int64{0.5: d.P50, 0.9: d.P90, 0.99: d.P99, 1: d.Max} {
		if (got != nil) != (len(exact) > 0) {
			return fmt.Errorf("percentile %v: %v of %d durations", p, got, len(exact))
		}
		if got != nil {
			if want := exact[int(math.Ceil(p*float64(len(exact))))-1]; *got < want || *got > want+want/16 || p == 1 && *got != want {
				return fmt.Errorf("percentile %v: %d, exactly %d", p, *got, want)
			}
		}
	}
	return nil
}

// loosen returns what sets the bounds of memory back.
func loosen() func() {
	a, b, c, d := sequenceRows, clearsKept, marksKept, gapsAtOnce
	return func() { sequenceRows, clearsKept, marksKept, gapsAtOnce = a, b, c, d }
}

// tighten makes what is held in memory small, in some streams, until the test ends.
func (r *recorded) tighten() {
	if r.rng.IntN(2) == 0 {
		return // as they were for the stream before
	}
	sequenceRows, clearsKept, marksKept, gapsAtOnce = 1+r.rng.IntN(4), r.rng.IntN(3), r.rng.IntN(4), 1+r.rng.IntN(3)
}

// lifetimes compares every line of one question with what follows from the records.
func (r *recorded) lifetimes(q *LifetimesQuery, from, to uint64) (lines int) {
	want := map[string]*expected{}
	for _, l := range r.oracle.Lifetimes(r.stream.Records, to) {
		switch {
		case l.End != 0 && l.End < from,
			q.Medium != "" && q.Medium != l.Medium,
			q.Tenant != nil && string(q.Tenant) != l.Object.Tenant,
			q.Backend != nil && string(q.Backend) != l.Object.Backend:
			continue
		}
		name := l.Medium
		switch q.By {
		case "tenant":
			name += "\x00" + l.Object.Tenant
		case "group":
			name += fmt.Sprintf("\x00%t%s", l.HasGroup, l.Group)
		}
		if want[name] == nil {
			want[name] = &expected{by: map[string]uint64{}}
		}
		want[name].take(&l, q.Doubtful)
	}
	r.must(r.e.Lifetimes(r.t.Context(), q, nil, func(l *LifetimesOut) error {
		name := *l.Medium
		switch q.By {
		case "tenant":
			var n Name
			r.must(n.read(&nameJSON{TenantBase64: l.TenantBase64}))
			name += "\x00" + string(n.Tenant)
		case "group":
			var n Name
			r.must(n.read(&nameJSON{KeyBase64: l.GroupBase64}))
			name += fmt.Sprintf("\x00%t%s", l.GroupBase64 != nil, n.Key)
		}
		x := want[name]
		if x == nil {
			return fmt.Errorf("a line for %q too many: %s", name, textOf(l))
		}
		delete(want, name)
		lines++
		if got := textOf(l); got != x.text() {
			return fmt.Errorf("%+v: line %q\n got %s\nwant %s", *q, name, got, x.text())
		}
		if err := checkDurations(&l.DurationOut, x.took); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		if err := checkDurations(&l.StoredAgain.DurationOut, x.again); err != nil {
			return fmt.Errorf("%q stored again: %w", name, err)
		}
		return nil
	}))
	if len(want) > 0 {
		r.t.Fatalf("seed %d: %+v: %d lines are missing: %v", r.stream.Seed, *q, len(want), want)
	}
	return lines
}

// TestLifetimesModel holds lifetimes against a naive computation from the records, on random streams.
func TestLifetimesModel(t *testing.T) {
	defer loosen()()
	lines, how := 0, map[string]int{}
	for n := range (*modelStreams + 1) / 2 {
		seed := *modelSeed + uint64(n)
		r := &recorded{t: t, rng: rand.New(rand.NewPCG(seed, 11)), stream: oracle.Generate(seed, oracle.Options{}), oracle: oracle.New(), fs: vfs.NewMem()}
		if n%2 == 1 {
			r.reads = &reads{often: 3 + r.rng.IntN(15), silence: 2 + r.rng.IntN(20)}
		}
		r.record()
		r.tighten()
		end := uint64(len(r.stream.Records))
		for range 6 {
			from, to := uint64(0), end
			q := &LifetimesQuery{By: []string{"tenant", "group", "none"}[r.rng.IntN(3)], Doubtful: r.rng.IntN(3) == 0, Top: r.rng.IntN(2) * 1000}
			if r.rng.IntN(3) > 0 {
				from = 1 + r.rng.Uint64N(end)
				q.From = When{Kind: AtOffset, Offset: from}
			}
			if r.rng.IntN(3) > 0 {
				to = max(from, 1) + r.rng.Uint64N(end-max(from, 1)+1)
				q.To = When{Kind: AtOffset, Offset: to}
			}
			if r.rng.IntN(4) == 0 {
				q.Medium = []string{"cpu", "disk"}[r.rng.IntN(2)]
			}
			if objects := r.oracle.Objects(); r.rng.IntN(4) == 0 && len(objects) > 0 {
				o := objects[r.rng.IntN(len(objects))]
				q.Tenant, q.Backend = Bytes(o.Tenant), append(Bytes{}, o.Backend...)
			}
			lines += r.lifetimes(q, from, to)
		}
		for _, l := range r.oracle.Lifetimes(r.stream.Records, end) {
			how[fmt.Sprintf("%s sure=%t", l.How, l.Took.Sure)]++
		}
		r.close()
	}
	t.Logf("%d lines on %d streams; lives %v", lines, (*modelStreams+1)/2, how)
	for _, h := range []string{oracle.CopyLeft, oracle.Removed, oracle.Upsert} {
		if *modelStreams >= 20 && (how[h+" sure=true"] == 0 || how[h+" sure=false"] == 0) {
			t.Errorf("no life %s", h)
		}
	}
}
