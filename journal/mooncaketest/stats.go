package mooncaketest

// Stats are a publisher's counters, named as GET /kv_events/status names them (spec/subscriber-guide.md,
// "Observability").
type Stats struct {
	PublishedBatches     uint64 `json:"published_batches"`      // messages handed to the socket
	PublishedEvents      uint64 `json:"published_events"`       // events in them
	DroppedEvents        uint64 `json:"dropped_events"`         // events dropped by the full queue, one seq each
	SkippedKeylessEvents uint64 `json:"skipped_keyless_events"` // stored and removed suppressed by Options.NoObjectKey
}

func (s *Stats) add(t Stats) {
	s.PublishedBatches += t.PublishedBatches
	s.PublishedEvents += t.PublishedEvents
	s.DroppedEvents += t.DroppedEvents
	s.SkippedKeylessEvents += t.SkippedKeylessEvents
}
