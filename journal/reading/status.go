package reading

// Status is what the master's counters or segments said that changes a claim; the record's header has the mark and the gap.
type Status struct {
	// From is the admin URL.
	From string `json:"from,omitempty"`
	// Facts say in the words of the Fact constants what changed.
	Facts []string `json:"facts,omitempty"`
	// Silent flags the epoch (R11).
	Silent bool `json:"silent,omitempty"`
	// Counters of the poll that showed it, and of the one before.
	Counters *Counters `json:"counters,omitempty"`
	Before   *Counters `json:"before,omitempty"`
	// Segments are the ids of segments that vanished.
	Segments []string `json:"segments,omitempty"`
}

// What a status can say.
const (
	FactTailLoss        = "tail_loss"        // the master sent more than was received
	FactRestart         = "restart"          // another process answers, and its first message did not come yet
	FactPublisherOff    = "publisher_off"    // the master runs without a publisher
	FactPublisherOn     = "publisher_on"     // it publishes again
	FactKeyless         = "keyless"          // it suppresses the events of objects
	FactOldStatus       = "old_status"       // its status lacks skipped_keyless_events: it may change things silently
	FactSegmentVanished = "segment_vanished" // the objects of a segment may be gone without an event
)

// FactCounters: nothing changed but the counters, which are kept because a loss was seen since the poll before.
const FactCounters = "counters"

// Counters are those of GET /kv_events/status.
type Counters struct {
	Batches uint64 `json:"published_batches"`
	Events  uint64 `json:"published_events"`
	Dropped uint64 `json:"dropped_events"`
	// Polled is when they were asked for, on our clock, Unix ms.
	Polled int64 `json:"polled_ms"`
}
