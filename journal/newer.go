package journal

import (
	"fmt"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// What a newer program wrote is refused, never skipped and never taken for damage: an unknown kind of record may change an answer, and
// an unknown flag the meaning of a known one. A checksum stands over all of it, so that it is no flipped bit.

// newer is the error of something at an offset that this program does not know.
func newer(offset uint64, what string) error {
	return fmt.Errorf("the journal at offset %d: %w: it has %s; use the newer program", offset, datadir.ErrNewer, what)
}

// newerRecord is a record of a table that has something that this program does not know.
type newerRecord struct {
	record int // its place in the block
	what   string
}

func (e *newerRecord) Error() string { return "a record has " + e.what }

const rareKnown = rareDamage | rareMark | rareGap | rareFrames | rareStale

// unknown says what of an entry this program does not know; "" where it knows all.
func (e *entry) unknown() string {
	switch {
	case kindNames[e.Kind] == "":
		return fmt.Sprintf("a record of kind %d", uint8(e.Kind))
	case !e.Damage.Known():
		return fmt.Sprintf("a kind of damage, %d, that this program does not know", uint8(e.Damage))
	case e.Mark > continuity.MarkBehind:
		return fmt.Sprintf("a mark of kind %d", uint8(e.Mark))
	case !e.MarkCause.Known() || !e.Gap.Cause.Known():
		return fmt.Sprintf("a cause, %d or %d, that this program does not know", uint8(e.MarkCause), uint8(e.Gap.Cause))
	case e.Gap.Lost > continuity.LostBetween:
		return fmt.Sprintf("a count of lost events of kind %d", uint8(e.Gap.Lost))
	}
	return ""
}
