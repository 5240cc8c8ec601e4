package continuity

import (
	"encoding/binary"
	"errors"
)

// ErrState is returned for bytes that are no encoded State.
var ErrState = errors.New("continuity: not an encoded state")

const (
	flagHasEventID = 1 << iota
	flagKeyed
	flagHasTime
	flagWindow
	flagWindowUsed
)

// AppendBinary appends the state without the last message's frames: flags u8, break u8, then epoch, seq and event_id
// as uvarints and the time as a varint.
func (s *State) AppendBinary(dst []byte) []byte {
	var flags byte
	for _, f := range []struct {
		on  bool
		bit byte
	}{{s.HasEventID, flagHasEventID}, {s.Keyed, flagKeyed}, {s.HasTime, flagHasTime}, {s.Window, flagWindow}, {s.WindowUsed, flagWindowUsed}} {
		if f.on {
			flags |= f.bit
		}
	}
	dst = append(dst, flags, byte(s.Break))
	dst = binary.AppendUvarint(dst, s.Epoch)
	dst = binary.AppendUvarint(dst, s.Seq)
	dst = binary.AppendUvarint(dst, s.EventID)
	return binary.AppendVarint(dst, s.Time)
}

// DecodeState reads what AppendBinary wrote.
func DecodeState(b []byte) (State, error) {
	if len(b) < 2 {
		return State{}, ErrState
	}
	flags := b[0]
	s := State{
		HasEventID: flags&flagHasEventID != 0, Keyed: flags&flagKeyed != 0, HasTime: flags&flagHasTime != 0,
		Window: flags&flagWindow != 0, WindowUsed: flags&flagWindowUsed != 0, Break: Break(b[1]),
	}
	b = b[2:]
	for _, p := range []*uint64{&s.Epoch, &s.Seq, &s.EventID} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return State{}, ErrState
		}
		*p, b = v, b[n:]
	}
	t, n := binary.Varint(b)
	if n <= 0 || n != len(b) {
		return State{}, ErrState
	}
	s.Time = t
	return s, nil
}
