package query

import (
	"context"
	"math"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"
)

// StatsOut are the figures of a data directory.
type StatsOut struct {
	// Events and Messages count what lies at or below DurableOffset.
	Events        uint64       `json:"events"`
	Messages      uint64       `json:"messages"`
	Duplicates    uint64       `json:"duplicates"`
	Damaged       uint64       `json:"damaged"`
	ObjectsLive   uint64       `json:"objects_live"`
	DurableOffset uint64       `json:"durable_offset"`
	Journal       JournalStats `json:"journal"`
	Index         IndexStats   `json:"index"`
	Sources       []SourceOut  `json:"sources"`
	// Horizon is where the journal begins; left out where it was never pruned. Events and the like count what was recorded all the same.
	Horizon *HorizonOut `json:"horizon,omitempty"`
	// LostEnd is what is gone from the end of a journal at rest; left out where nothing is known to be.
	LostEnd *LostEnd `json:"lost_end,omitempty"`
	// Recorder is left out where none runs.
	Recorder *RecorderStats `json:"recorder,omitempty"`
	// Dir is the data directory: an absolute path on its machine, as --dir takes it. Left out where that is no UTF-8.
	Dir string `json:"dir,omitempty"`
}

// JournalStats are in bytes; per event where there is any, and of those behind the horizon. RawBytes count what was received.
type JournalStats struct {
	Bytes            uint64   `json:"bytes"`
	WALBytes         uint64   `json:"wal_bytes"`
	RawBytes         uint64   `json:"raw_bytes"`
	BytesPerEvent    *float64 `json:"bytes_per_event,omitempty"`
	RawBytesPerEvent *float64 `json:"raw_bytes_per_event,omitempty"`
}

// IndexStats are in bytes and offsets, BytesPerEvent of the events behind the horizon; Lag is how many records the index is behind the journal.
type IndexStats struct {
	Bytes         uint64   `json:"bytes"`
	BytesPerEvent *float64 `json:"bytes_per_event,omitempty"`
	AppliedOffset uint64   `json:"applied_offset"`
	Lag           uint64   `json:"lag"`
}

// SourceOut is where a source stands.
type SourceOut struct {
	Source    string   `json:"source"`
	Endpoints []string `json:"endpoints,omitempty"`
	Masters   []string `json:"masters,omitempty"`
	Epoch     uint64   `json:"epoch"`
	Seq       uint64   `json:"seq"`
	EventID   *uint64  `json:"event_id,omitempty"`
	Connected bool     `json:"connected"`
	Messages  uint64   `json:"messages"`
	Events    uint64   `json:"events"`
	Marks     uint64   `json:"marks"`
	Gaps      uint64   `json:"gaps"`
	// Damaged counts messages that could not be decoded or applied: kept raw, each a mark.
	Damaged uint64 `json:"damaged"`
	// Readings counts the readings of the master that ended.
	Readings uint64 `json:"readings,omitempty"`
	LastTime *Time  `json:"last_time,omitempty"`
	// LastReceived is our clock at the last message.
	LastReceived *Time `json:"last_received,omitempty"`
}

// RecorderStats are of the running recorder: bytes of its buffer that wait for the journal, and its bound.
type RecorderStats struct {
	BufferBytes    int64 `json:"buffer_bytes"`
	BufferMaxBytes int64 `json:"buffer_max_bytes"`
	UptimeSeconds  int64 `json:"uptime_seconds"`
	// Sockets are the endpoints that are listened to.
	Sockets []SocketStats `json:"sockets,omitempty"`
	// NativeBytes are held outside Go's heap: by ZeroMQ and the databases; left out where that is not known.
	NativeBytes int64 `json:"native_bytes,omitempty"`
	// MinFreeBytes: recording pauses while fewer are free on the disk. Paused is left out while it records.
	MinFreeBytes uint64       `json:"min_free_bytes"`
	Paused       *PausedStats `json:"paused,omitempty"`
	// DiskFull: a write waits for room.
	DiskFull bool `json:"disk_full,omitempty"`
	// Masters are what the masters' counters said last.
	Masters []MasterStats `json:"masters,omitempty"`
}

// PausedStats tell of a pause of the recording, for want of room on the disk.
type PausedStats struct {
	Since     Time   `json:"since"`
	FreeBytes uint64 `json:"free_bytes"`
}

// MasterStats are the counters of one master. LastSeq is what they amount to: the number of the last message that it sent or dropped.
type MasterStats struct {
	Source string `json:"source"`
	URL    string `json:"url"`
	// Delivers: it is the master of the endpoint that delivers the source's events. Answers: it answered the last poll.
	Delivers         bool   `json:"delivers"`
	Answers          bool   `json:"answers"`
	Enabled          bool   `json:"enabled"`
	PublishedBatches uint64 `json:"published_batches"`
	PublishedEvents  uint64 `json:"published_events"`
	DroppedEvents    uint64 `json:"dropped_events"`
	LastSeq          uint64 `json:"last_seq"`
}

// Stats returns the figures of the moment. Counting the live objects takes time in proportion to their number: see Engine.Counted.
func (e *Engine) Stats(ctx context.Context) (*StatsOut, error) {
	v, err := e.Index.View()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	j := e.Journal.Stats()
	here := j.Totals.Events - min(j.Totals.Events, e.Journal.Horizon().Events)
	out := &StatsOut{
		Events: j.Totals.Events, Messages: j.Totals.Messages, Duplicates: j.Totals.Duplicates, Damaged: j.Totals.Damaged,
		DurableOffset: j.Durable, Horizon: e.Horizon(), LostEnd: e.LostEnd, Dir: absolute(e.Dir),
		Journal: JournalStats{
			Bytes: j.TableBytes, WALBytes: j.LogBytes, RawBytes: j.Totals.RawBytes,
			BytesPerEvent: per(j.TableBytes, here), RawBytesPerEvent: per(j.Totals.RawBytes, j.Totals.Events),
		},
		Index:   IndexStats{Bytes: e.Index.Bytes(), AppliedOffset: v.Applied(), BytesPerEvent: per(e.Index.Bytes(), here)},
		Sources: []SourceOut{},
	}
	if j.Durable > v.Applied() {
		out.Index.Lag = j.Durable - v.Applied()
	}
	for _, s := range e.Journal.Sources() {
		st := v.Source(s.ID)
		so := SourceOut{
			Source: s.Name, Endpoints: s.Endpoints, Masters: s.Masters, Epoch: st.Epoch, Seq: st.Last.Seq,
			Connected: e.Live != nil && e.Live(s.ID), Messages: st.Messages, Events: st.Events, Marks: st.Marks, Gaps: st.Gaps, Damaged: st.Damaged, Readings: st.Readings,
		}
		if st.HasID {
			id := st.EventID
			so.EventID = &id
		}
		if st.Last.HasTime {
			so.LastTime = msTime(st.Last.Time)
		}
		if st.Last.Offset != 0 {
			so.LastReceived = msTime(st.Last.Received)
		}
		out.Sources = append(out.Sources, so)
	}
	if out.ObjectsLive, err = e.Counted.count(func() (uint64, error) { return v.CountLive(ctx) }); err != nil {
		return nil, err
	}
	return out, nil
}

// CountCache remembers a count that takes time in proportion to what is counted, for twenty times as long as it took: so
// whoever asks all the time costs a twentieth of a processor at most.
type CountCache struct {
	mu    sync.Mutex
	value uint64
	until time.Time
}

func (c *CountCache) count(f func() (uint64, error)) (uint64, error) {
	if c == nil {
		return f()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := time.Now()
	if begun.Before(c.until) {
		return c.value, nil
	}
	n, err := f()
	if err == nil {
		c.value, c.until = n, time.Now().Add(20*time.Since(begun))
	}
	return n, err
}

func per(bytes, events uint64) *float64 {
	if events == 0 || bytes == 0 {
		return nil
	}
	v := math.Round(float64(bytes)/float64(events)*10) / 10
	return &v
}

// absolute is a directory as whoever stands elsewhere names it; empty where there is no such text.
func absolute(dir string) string {
	if dir == "" {
		return ""
	}
	path, err := filepath.Abs(dir)
	if err != nil || !utf8.ValidString(path) {
		return ""
	}
	return path
}
