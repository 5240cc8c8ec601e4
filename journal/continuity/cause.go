package continuity

import "fmt"

// Cause names why evidence is in doubt, or why events are missing. Values are part of the journal's and the index's
// format: never renumber, only append.
type Cause uint8

const (
	CauseNone Cause = iota
	// PublisherQueue: the publisher's own queue overflowed and dropped its oldest events (d = 0 in R3).
	PublisherQueue
	// Transport: whole messages vanished between the publisher's socket and ours, as at a high-water mark.
	Transport
	// PublisherRestart: the numbers went back, so another process publishes.
	PublisherRestart
	// LateJoin: the first message ever seen of a source was not its publisher's first.
	LateJoin
	// Disconnected: the connection broke and the numbers jumped; how many events are missing is not known.
	Disconnected
	// Reconnect: the connection broke and the numbers go on, which proves nothing across connections.
	Reconnect
	// RecorderDown: no recorder ran, and the numbers jumped meanwhile.
	RecorderDown
	// RecorderSlow: messages vanished while the recorder's own buffer was full.
	RecorderSlow
	// TailLoss: the publisher's counters say it sent more than was received.
	TailLoss
	// Damaged: a message that could not be decoded, or a part of the journal that was lost.
	Damaged
	// Silent: the master changed something without an event.
	Silent
	// Unknown: sequence numbers are missing and no event_id tells why.
	Unknown
)

var causeNames = [...]string{
	CauseNone: "", PublisherQueue: "publisher_queue", Transport: "transport", PublisherRestart: "publisher_restart",
	LateJoin: "late_join", Disconnected: "disconnected", Reconnect: "reconnect", RecorderDown: "recorder_down",
	RecorderSlow: "recorder_slow", TailLoss: "tail_loss", Damaged: "damaged", Silent: "silent", Unknown: "unknown",
}

// Known reports whether this program knows the cause; a newer one may have written others.
func (c Cause) Known() bool { return int(c) < len(causeNames) }

func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause_%d", uint8(c))
}
