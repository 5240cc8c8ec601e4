package mooncaketest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"
)

// BenchmarkStore is the generator alone; one operation is one event.
func BenchmarkStore(b *testing.B) {
	s := NewStore(StoreOptions{Seed: 1, Tenants: 3, ClearEvery: 2_000_000})
	var changes []Change
	b.ReportAllocs()
	for made := 0; made < b.N; made += len(changes) {
		changes = s.Step(changes[:0])
	}
}

// BenchmarkStoreAndEncode adds numbering and encoding, 64 events a batch, without queue and socket.
func BenchmarkStoreAndEncode(b *testing.B) {
	s := NewStore(StoreOptions{Seed: 1, Tenants: 3, ClearEvery: 2_000_000})
	var o Options
	o.setDefaults()
	batch := newBatch(&o)
	var changes []Change
	bytes := 0
	b.ReportAllocs()
	for made := 0; made < b.N; made += BatchEvents {
		for len(changes) < BatchEvents {
			changes = s.Step(changes)
		}
		n := copy(batch.changes[:], changes)
		changes = changes[:copy(changes, changes[n:])]
		bytes += len(batch.encode(n, 1_700_000_000_000))
	}
	b.ReportMetric(float64(bytes)/float64(b.N), "B/event")
}

// BenchmarkPublisher is a flat-out Sim with no subscriber; one operation is one event sent.
func BenchmarkPublisher(b *testing.B) {
	sim, err := NewSim(SimOptions{Store: StoreOptions{Seed: 1, Tenants: 3, ClearEvery: 2_000_000}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- sim.Run(ctx) }()
	for sim.Totals().PublishedEvents < uint64(b.N) {
		time.Sleep(time.Millisecond)
	}
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	s := sim.Totals()
	b.ReportMetric(100*float64(s.DroppedEvents)/float64(s.PublishedEvents+s.DroppedEvents), "%dropped")
}

// benchAdmin is an admin API beside 1,000,000 objects of the tenant default; keys is a query for 1,000 of them.
func benchAdmin(b *testing.B) (admin *Admin, keys string) {
	sim, err := NewSim(SimOptions{Store: StoreOptions{Seed: 1}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { sim.Publisher().Kill() })
	admin = NewAdmin(sim, AdminOptions{})
	sim.mu.Lock()
	defer sim.mu.Unlock()
	for sim.store.Live() < 1_000_000 {
		sim.store.put(nil)
	}
	for _, o := range sim.store.live[:1000] {
		keys += o.name.key() + ","
	}
	return admin, keys
}

func benchRequest(b *testing.B, admin *Admin, target string) {
	b.ReportAllocs()
	for b.Loop() {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		b.SetBytes(int64(w.Body.Len()))
	}
}

// BenchmarkAdminListing is one listing of 1,000,000 keys.
func BenchmarkAdminListing(b *testing.B) {
	admin, _ := benchAdmin(b)
	benchRequest(b, admin, "/get_all_keys")
}

// BenchmarkAdminQuery is one query of 1,000 keys, of 1,000,000 objects.
func BenchmarkAdminQuery(b *testing.B) {
	admin, keys := benchAdmin(b)
	benchRequest(b, admin, "/batch_query_keys?keys="+keys)
}
