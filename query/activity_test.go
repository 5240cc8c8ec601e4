package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
)

// activity is what Activity gives.
func (s *several) activity(o ActivityOptions) []ActivityBucket {
	s.t.Helper()
	var all []ActivityBucket
	s.must(s.e.Activity(s.t.Context(), o, nil, func(b *ActivityBucket) error {
		all = append(all, *b)
		return nil
	}))
	return all
}

// TestActivityModel holds activity against the streams: each bucket has the events of its time, and together they have all.
func TestActivityModel(t *testing.T) {
	counted := uint64(0)
	for n := range max(1, *modelStreams/3) {
		s := recordSeveral(t, *modelSeed+uint64(n), 1+n%3, 0)
		for range 15 {
			source := -1
			o := ActivityOptions{}
			if s.rng.IntN(2) == 0 || len(s.sources) == 1 {
				source = s.rng.IntN(len(s.sources))
				o.Source = s.sources[source].Name
			}
			o.Span = Span{s.moment(source), s.moment(source)}
			if s.rng.IntN(2) == 0 {
				o.Bucket = time.Duration(1+s.rng.IntN(2000)) * time.Millisecond
			}
			if s.rng.IntN(3) == 0 {
				o.Tenant = Bytes(s.streams[max(source, 0)].Objects[0].Tenant)
			}
			if s.rng.IntN(3) == 0 {
				o.Medium = "cpu"
			}
			if s.rng.IntN(3) == 0 {
				o.Types = []string{"removed", "cleared"}
			}
			counted += s.compareActivity(o)
		}
	}
	if counted == 0 {
		t.Fatal("nothing was compared")
	}
	t.Logf("%d events counted", counted)
}

func (s *several) compareActivity(o ActivityOptions) (counted uint64) {
	got := s.activity(o)
	about := fmt.Sprintf("seed %d, %+v", s.seed, o)
	if len(got) == 0 {
		got = []ActivityBucket{{}}
	}
	width := got[0].End.Sub(got[0].Begin.Time)
	if o.Bucket > 0 && width > 0 && width != o.Bucket || o.Bucket == 0 && len(got) > 2*wantBuckets {
		s.t.Fatalf("%s: %d buckets of %v", about, len(got), width)
	}
	type sums struct {
		messages, events, duplicates, stored, removed, cleared uint64
		media, tenants, gaps                                   uint64
	}
	var want, have []sums
	for i := range got {
		b := &got[i]
		if i > 0 && !b.Begin.Equal(got[i-1].End.Time) {
			s.t.Fatalf("%s: bucket %d begins at %v", about, i, b.Begin)
		}
		h := sums{messages: b.Messages, events: b.Events, duplicates: b.Duplicates, stored: b.ByType.Stored, removed: b.ByType.Removed, cleared: b.ByType.Cleared,
			media: b.OtherMedia, tenants: b.OtherTenants}
		for _, n := range b.ByMedium {
			h.media += n
		}
		for _, t := range b.ByTenant {
			h.tenants += t.Events
		}
		for _, g := range b.Gaps {
			h.gaps += g.Count
		}
		have, want = append(have, h), append(want, sums{})
	}
	bucketAt := func(ms int64) *sums {
		for i := range got {
			if t := time.UnixMilli(ms); !t.Before(got[i].Begin.Time) && t.Before(got[i].End.Time) {
				return &want[i]
			}
		}
		s.t.Fatalf("%s: no bucket at %d", about, ms)
		return nil
	}
	all := o.Tenant == nil && o.Medium == "" && o.Types == nil
	for i, r := range s.all {
		offset := uint64(i + 1)
		if o.Source != "" && o.Source != s.sources[r.source].Name || r.kind != journal.Message {
			continue
		}
		if from, to := s.within(r.source, o.Span); offset <= from || offset > to {
			continue
		}
		h := s.header(offset)
		ms := h.Received / 1e6
		if h.HasTime {
			ms = h.Time
		}
		var scan event.Batch
		scan.Scan(r.capture.Frames)
		hit := all
		if !h.Duplicate {
			for _, ev := range scan.Events {
				if o.Tenant != nil && string(o.Tenant) != string(ev.Tenant) || o.Medium != "" && ev.Type != event.Cleared && string(ev.Medium) != o.Medium ||
					o.Types != nil && ev.Type == event.Stored {
					continue
				}
				b := bucketAt(ms)
				hit = true
				b.events++
				b.tenants++
				switch ev.Type {
				case event.Stored:
					b.stored++
				case event.Removed:
					b.removed++
				default:
					b.cleared++
				}
				if ev.Type != event.Cleared {
					b.media++
				}
			}
		}
		if hit {
			bucketAt(ms).messages++
		}
		if h.Duplicate && all {
			bucketAt(ms).duplicates++
		}
		if h.Gap.Cause != 0 {
			bucketAt(ms).gaps++
		}
		if h.Damage != 0 {
			bucketAt(ms).gaps++
		}
	}
	for i := range want {
		if have[i] != want[i] {
			s.t.Fatalf("%s: bucket %d of %d at %v: got %+v, want %+v", about, i+1, len(want), got[i].Begin, have[i], want[i])
		}
		counted += want[i].events
	}
	return counted
}

func TestActivityOfTooManyBuckets(t *testing.T) {
	c, err := newChart(time.Millisecond, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.bucket(maxBuckets - 1); err != nil {
		t.Fatal(err)
	}
	var usage *UsageError
	if _, err := c.bucket(maxBuckets); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--bucket 2s or more") {
		t.Fatalf("got %v", err)
	}
	if _, err := newChart(time.Microsecond, 0, 0); !errors.As(err, &usage) {
		t.Fatalf("a bucket below a millisecond: %v", err)
	}
}

// A clock that goes far back makes buckets wider, and loses nothing.
func TestActivityCoarsens(t *testing.T) {
	c, err := newChart(0, 1_795_000_000_000, 1_795_000_060_000)
	if err != nil {
		t.Fatal(err)
	}
	ev := event.Event{Type: event.Stored, Tenant: []byte("t"), Medium: []byte("cpu")}
	times := []int64{1_795_000_000_000, 1_795_000_030_000, 1_795_000_060_000, -5, 0, 1_700_000_000_000, 1_795_000_059_999}
	for _, ms := range times {
		b, err := c.bucket(ms)
		if err != nil {
			t.Fatal(err)
		}
		c.count(b, &ev)
	}
	sum, n := uint64(0), 0
	last := &ActivityBucket{}
	if err := c.tell(t.Context(), func(b *ActivityBucket) error {
		sum += b.Events
		n++
		if b.Events > 0 && b.Events != b.ByMedium["cpu"] {
			t.Errorf("bucket %+v", b)
		}
		last = b
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if sum != uint64(len(times)) || n > 2*wantBuckets || last.Events != 4 {
		t.Fatalf("%d events in %d buckets, %d in the last, of %d", sum, n, last.Events, len(times))
	}
}

// A flood of tenants is counted as others; the busy ones keep their names, and the sums are right.
func TestActivityOfManyTenants(t *testing.T) {
	c, err := newChart(time.Second, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c.maxShares = 10_000
	ev := event.Event{Type: event.Stored, Medium: []byte("cpu")}
	total := uint64(0)
	for i := range 30_000 {
		b, err := c.bucket(int64(i))
		if err != nil {
			t.Fatal(err)
		}
		for _, tenant := range []string{"busy", fmt.Sprintf("tenant-%d", i)} {
			ev.Tenant = []byte(tenant)
			c.count(b, &ev)
			total++
		}
	}
	busy, sum := uint64(0), uint64(0)
	if err := c.tell(t.Context(), func(b *ActivityBucket) error {
		sum += b.OtherTenants
		for _, a := range b.ByTenant {
			sum += a.Events
			if *a.Tenant == "busy" {
				busy += a.Events
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if sum != total || busy != total/2 || len(c.tenants.numbers) > topTenants*4 {
		t.Fatalf("sum %d of %d, busy %d, %d names kept", sum, total, busy, len(c.tenants.numbers))
	}
}
