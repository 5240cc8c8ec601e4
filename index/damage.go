package index

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
)

// Damage reports whether err says that a part of the index cannot be read, so that it must be computed anew. A damage of the journal
// is none of the index.
func Damage(err error) bool {
	if corrupt := (*journal.CorruptError)(nil); err == nil || errors.As(err, &corrupt) {
		return false
	}
	return errors.Is(err, ErrRebuild) || errors.Is(err, errEvidence) || pebble.IsCorruptionError(err)
}
