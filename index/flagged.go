package index

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// flag writes down that the master of a source's epoch changes things without an event, or may, as the record at offset tells.
func flag(w pebble.Writer, source uint32, epoch, offset uint64) error {
	return w.Set(offsetKey(keySilent, source, epoch), binary.AppendUvarint(nil, offset), pebble.NoSync)
}

// FlaggedAt returns the offset of the newest record that told that the master of a source's epoch changes things without an event (R11), or that
// what told so may be lost; ok is false where the epoch is not flagged.
func (v *View) FlaggedAt(source uint32, epoch uint64) (offset uint64, ok bool, err error) {
	row, err := get(v.snap, offsetKey(keySilent, source, epoch))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	offset, n := binary.Uvarint(row)
	if n <= 0 {
		return 0, false, errEvidence
	}
	return offset, true, nil
}
