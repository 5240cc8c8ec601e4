package mooncaketest

import "github.com/kvjournal/kvjournal/journal/event"

// The media of the stream: all that a Store uses. A Change may name any other.
const (
	CPU  = "cpu"
	Disk = "disk"
)

// Change is one event before it has numbers and a time: a queue entry of the publisher.
type Change struct {
	Type   event.Type
	Tenant string
	Medium string // not for Cleared
	Key    string // not for Cleared
	Group  string // group_id; empty: nil on the wire. Not for Cleared
}
