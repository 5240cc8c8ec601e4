package query

// SocketStats are of one endpoint of a running recorder. The counters are of this run.
type SocketStats struct {
	Source    string `json:"source"`
	Endpoint  string `json:"endpoint"`
	Connected bool   `json:"connected"`
	// Messages and Bytes were received.
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	// Disconnects counts connections that broke after their handshake, Replaced sockets that were given up: for a message beyond the
	// bounds, or a peer that is no publisher.
	Disconnects uint64 `json:"disconnects"`
	Replaced    uint64 `json:"replaced"`
	// Stalls is how often the buffer was found full.
	Stalls uint64 `json:"stalls"`
	// LastError is what was wrong last, for people; it stays, with its time, when things are well again.
	LastError     string `json:"last_error,omitempty"`
	LastErrorTime *Time  `json:"last_error_time,omitempty"`
}
