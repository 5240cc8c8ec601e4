package recorder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

func stored(medium, tenant string) event.Event {
	return event.Event{Type: event.Stored, Medium: []byte(medium), Tenant: []byte(tenant), Key: []byte("k")}
}

// Events are counted by what they are, whatever their order and batches.
func TestTally(t *testing.T) {
	tally := newTally()
	a, b, c := stored("cpu", "a"), stored("disk", "a"), event.Event{Type: event.Cleared, Tenant: []byte("a")}
	tally.batch(1, []event.Event{a, a, b, a, c})
	tally.batch(2, []event.Event{a})
	tally.batch(1, []event.Event{a, c})
	tally.batch(1, nil)
	got := map[string]uint64{}
	for _, n := range tally.Events() {
		got[fmt.Sprintf("%d %v %s %s", n.Source, n.Type, n.Medium, n.Tenant)] = n.Count()
	}
	want := map[string]uint64{"1 stored cpu a": 4, "1 stored disk a": 1, "1 cleared  a": 2, "2 stored cpu a": 1}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %v, want %d", k, got, n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A publisher cannot make labels without bound; nothing is left out of the sum.
func TestTallyIsBounded(t *testing.T) {
	tally := newTally()
	total := uint64(0)
	for i := range 10_000 {
		tally.batch(1, []event.Event{stored(fmt.Sprintf("m%d", i%100), fmt.Sprintf("t%d", i))})
		total++
	}
	tally.batch(1, []event.Event{stored("\x00", strings.Repeat("x", 1000)), stored("m1\x00", "\xff")})
	total += 2
	sum, labels := uint64(0), tally.Events()
	for _, n := range labels {
		sum += n.Count()
		if len(n.Medium) > longestLabel || len(n.Tenant) > longestLabel || n.Tenant == "\xff" {
			t.Errorf("label %q %q", n.Medium, n.Tenant)
		}
	}
	if sum != total || len(labels) > (TalliedMedia+1)*(TalliedTenants+1) {
		t.Errorf("%d counts that sum up to %d, want %d", len(labels), sum, total)
	}
}

func TestTallyFaults(t *testing.T) {
	tally := newTally()
	tally.fault(1, &continuity.Verdict{})
	gap := continuity.Gap{Cause: continuity.Transport, First: 5, Last: 9, Lost: continuity.LostBetween, Min: 5, Max: 30}
	tally.fault(1, &continuity.Verdict{Gap: gap, Mark: continuity.MarkBehind, MarkCause: continuity.Transport})
	gap.Lost = continuity.LostUnknown
	tally.fault(1, &continuity.Verdict{Gap: gap, Mark: continuity.MarkBefore, MarkCause: continuity.Reconnect})
	got := map[string]FaultCount{}
	for _, f := range tally.Faults() {
		got[f.Cause.String()] = f
	}
	if f := got["transport"]; f.Gaps != 2 || f.Missing != 10 || f.LostMin != 5 || f.LostMax != 30 || f.Marks != 1 {
		t.Errorf("transport: %+v", f)
	}
	if f := got["reconnect"]; f.Gaps != 0 || f.Marks != 1 || len(got) != 2 {
		t.Errorf("reconnect: %+v of %v", f, got)
	}
}

// Counting a batch of one kind is a comparison an event, and takes no memory.
func BenchmarkTally(b *testing.B) {
	same, mixed := make([]event.Event, 64), make([]event.Event, 64)
	for i := range same {
		same[i], mixed[i] = stored("cpu", "default"), stored([]string{"cpu", "disk"}[i%2], []string{"default", "tenant-1", "tenant-2"}[i%3])
	}
	for name, events := range map[string][]event.Event{"same": same, "mixed": mixed} {
		b.Run(name, func(b *testing.B) {
			tally := newTally()
			tally.batch(1, events)
			b.ReportAllocs()
			for b.Loop() {
				tally.batch(1, events)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/event")
		})
	}
}
