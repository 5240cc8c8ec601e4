package journal

import (
	"errors"
	"fmt"
)

// Errors by cause; test with errors.Is. Those of the directory (foreign, newer, locked, missing) are in journal/datadir.
var (
	// ErrNotFound: no record at that offset, sequence number or moment.
	ErrNotFound = errors.New("not in the journal")
	// ErrClosed: the journal was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrReadOnly: the journal was opened for reading only.
	ErrReadOnly = errors.New("journal is open for reading only")
)

// CorruptError names the place and the kind of a damage in the journal's own bytes.
type CorruptError struct {
	// Offset is the first offset of the damaged block, 0 where the damage is elsewhere.
	Offset uint64
	What   string
}

// WhatToDo is what stands behind every message about a damaged journal.
const WhatToDo = "`kvjournal verify` tells what is damaged, `kvjournal repair --to NEW` saves all that is readable"

func (e *CorruptError) Error() string {
	if e.Offset == 0 {
		return "the journal is damaged: " + e.What + "; " + WhatToDo
	}
	return fmt.Sprintf("the journal is damaged at offset %d: %s; %s", e.Offset, e.What, WhatToDo)
}
