package index

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
)

// Where a source stands is a row that is written again and again, so of the past it is not known. Checkpoints keep it, as of places that
// depend on the journal alone: a journal can be pruned up to one of them.
const (
	// CheckpointEvents and checkpointEvery (ns of receive time) are how far apart checkpoints are at most, whichever comes first. Part of the
	// format.
	CheckpointEvents = 500_000
	checkpointEvery  = 600 * 1e9
)

// Checkpoint is where all sources stood behind the record at Offset.
type Checkpoint struct {
	Offset uint64 `json:"-"`
	// Received is the receive time, ns, of the record behind it.
	Received int64 `json:"received"`
	// Events is how many there were, over all sources.
	Events  uint64                  `json:"events"`
	Sources map[uint32]*SourceState `json:"sources"`
}

// Cut is the offset from which on answers about a source need what was so at the checkpoint: a moment behind it lies at the source's newest
// message, or at what answers speak of by default, at least.
func (c *Checkpoint) Cut(source uint32) uint64 {
	s := c.Sources[source]
	if s == nil {
		return 0
	}
	return min(c.Offset, s.Last.Offset, s.AsOf.Offset)
}

func checkpointKey(offset uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyCheckpoint}, offset)
}

func decodeCheckpoint(key, value []byte) (*Checkpoint, error) {
	c := &Checkpoint{}
	if len(key) != 9 || json.Unmarshal(value, c) != nil {
		return nil, errEvidence
	}
	c.Offset = binary.BigEndian.Uint64(key[1:])
	return c, nil
}

// lastCheckpoint reads the newest one, nil: none.
func lastCheckpoint(db pebble.Reader) (*Checkpoint, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: checkpointKey(0), UpperBound: []byte{keyCheckpoint + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if !it.Last() {
		return nil, it.Error()
	}
	return decodeCheckpoint(it.Key(), it.Value())
}

// checkpointer decides when a checkpoint is due. The zero value is that of an empty index.
type checkpointer struct {
	events   uint64 // between two
	at       uint64 // the record applied last
	total    uint64 // events applied
	last     uint64 // total at the last checkpoint
	received int64  // ns, of the last checkpoint
	any      bool
}

// due reports whether one is due before a record that was received at that time.
func (c *checkpointer) due(received int64) bool {
	return !c.any || c.total-c.last >= c.events || received-c.received >= checkpointEvery
}

// checkpoint writes one behind the record applied last, if it is due before the next, received at that time.
func (a *applier) checkpoint(received int64) error {
	c := &a.points
	if !c.due(received) {
		return nil
	}
	v, err := json.Marshal(&Checkpoint{Received: received, Events: c.total, Sources: a.sources})
	if err != nil {
		return err
	}
	c.any, c.last, c.received = true, c.total, received
	return a.batch.Set(checkpointKey(c.at), v, nil)
}

// readCheckpointer is how far an index is.
func readCheckpointer(db pebble.Reader, sources map[uint32]*SourceState, events uint64) (c checkpointer, err error) {
	c.events = events
	if c.at, err = readApplied(db); err != nil {
		return c, err
	}
	for _, s := range sources {
		c.total += s.Events
	}
	last, err := lastCheckpoint(db)
	if err == nil && last != nil {
		c.any, c.last, c.received = true, last.Events, last.Received
	}
	return c, err
}

// checkpoints calls f with each checkpoint up to an offset, the newest first.
func (v *View) checkpoints(to uint64, f func(*Checkpoint) error) error {
	return v.each(checkpointKey(0), append(checkpointKey(to), 0), true, func(key, value []byte) error {
		c, err := decodeCheckpoint(key, value)
		if err != nil {
			return err
		}
		return f(c)
	})
}

// readingPatience is how old (ns of receive time) a reading of the master may be that has begun and not ended, and may still end: a journal
// is not pruned up to behind its begin. An older one was given up; should it end after all, it is passed over (applier.part).
const readingPatience = 3600 * 1e9

// whole reports whether all that can still be said about what was so at a checkpoint is in the view: no reading that began by then ended
// behind it, or is still under way.
func (v *View) whole(c *Checkpoint) (bool, error) {
	for id, s := range c.Sources {
		if s.Reading == nil {
			continue
		}
		r, ended, err := v.SourceReading(id, s.Reading.Offset)
		if err != nil {
			return false, err
		}
		if ended && r.Offset > c.Offset {
			return false, nil
		}
		if now := v.sources[id]; !ended && now != nil && now.Reading != nil && now.Reading.Offset == s.Reading.Offset {
			newest := int64(0)
			for _, other := range v.sources {
				newest = max(newest, other.Last.Received, other.AsOf.Received)
			}
			if newest-s.Reading.Received < readingPatience/1e6 {
				return false, nil
			}
		}
	}
	return true, nil
}

// PruneTo finds the newest checkpoint up to an offset up to which the journal can be pruned; nil where there is none.
func (v *View) PruneTo(offset uint64) (found *Checkpoint, err error) {
	err = v.checkpoints(min(offset, v.applied, math.MaxUint64-1), func(c *Checkpoint) error {
		if c.Offset == 0 {
			return nil
		}
		ok, err := v.whole(c)
		if err == nil && ok {
			found, err = c, errPage
		}
		return err
	})
	if err == errPage {
		err = nil
	}
	return found, err
}

// horizonError is for rows that the baseline of another format has.
func horizonError(h *journal.Horizon) error {
	return fmt.Errorf("the baseline, which stands for what was pruned, has rows of format %d, and this program reads %d: use the version of kvjournal that pruned the journal, or one that reads both", h.Format, formatVersion)
}
