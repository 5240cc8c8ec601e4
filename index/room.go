package index

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/journal"
)

// What computing an index takes on the disk is known about before it begins, so that none is begun that cannot end: Pebble does not give up
// writing on a full disk. A row of the history is about as long in the spool as in the tables, its live row included.
const (
	// rowRoom is that length in bytes, of a usual event (doc.go).
	rowRoom = 70
	// beside is how many of an event's received bytes are no part of its row, of one with a long key: the others are taken for the row.
	beside = 300
	// spareRoom is what is left free, for what is not counted.
	spareRoom = 16 << 20
)

// extent is how large an index is about: its history rows, and the bytes of one.
type extent struct{ rows, row uint64 }

// extentOf is that of the index of a whole journal.
func extentOf(j *journal.Journal) extent {
	t, h := j.Durables().Totals, j.Horizon()
	e := extent{rows: h.Rows + t.Events - min(t.Events, h.Events), row: rowRoom}
	if t.Events > 0 {
		e.row = max(e.row, t.RawBytes/t.Events-min(t.RawBytes/t.Events, beside))
	}
	return e
}

// spooled is the room that it takes to sort the rows in a spool first, which goes when the tables are written.
func (e extent) spooled() uint64 { return 2*e.rows*e.row + spareRoom }

// applied is the room that it takes to write the rows into the database one by one, with what compactions hold meanwhile.
func (e extent) applied() uint64 { return 3*e.rows*e.row/2 + spareRoom }

// NoRoomError: there is no room on the disk to compute an index. The old one is as it was.
type NoRoomError struct {
	Dir string
	// Rows are the events that were to be brought in, which takes Need bytes, about; Free are there.
	Rows, Need, Free uint64
	// InPlace: the index that is there was to be brought up; else one was to be computed beside it.
	InPlace bool
	// Err is why a write failed, nil: none was begun.
	Err error
}

func (e *NoRoomError) Error() string {
	if e.InPlace {
		return fmt.Sprintf("no room to bring the index up: what it lacks takes about %s on the disk of %s, where %s are free. The journal has it: make room, and the next question brings the index up",
			sizeText(e.Need), e.Dir, sizeText(e.Free))
	}
	what := fmt.Sprintf("no room to compute the index anew: that of %d events takes about %s on the disk of %s, beside the old one, where %s are free",
		e.Rows, sizeText(e.Need), e.Dir, sizeText(e.Free))
	if e.Err != nil {
		what = fmt.Sprintf("the disk of %s filled up while the index of %d events was computed anew, which takes about %s beside the old one: %v", e.Dir, e.Rows, sizeText(e.Need), e.Err)
	}
	return what + ". The old index is as it was: make room and try again"
}

func (e *NoRoomError) Unwrap() error { return e.Err }

// noRoom reports whether nothing was begun, for want of room.
func noRoom(err error) bool {
	room := (*NoRoomError)(nil)
	return errors.As(err, &room) && room.Err == nil
}

// sizeText is a number of bytes for a person.
func sizeText(n uint64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// spools decides how the index of a journal is computed beside an old one: sorted in a spool, where there is room, else row by row. Where there is
// no room for that either it is a *NoRoomError.
func spools(j *journal.Journal, o Options) (bool, error) {
	usage, err := o.FS.GetDiskUsage(j.Dir())
	if err != nil || o.Passing { // it is not known, or all stays in memory
		return true, nil
	}
	e := extentOf(j)
	switch free := usage.AvailBytes; {
	case free >= e.spooled():
		return true, nil
	case free < e.applied():
		return false, &NoRoomError{Dir: j.Dir(), Rows: e.rows, Need: e.applied(), Free: free}
	default:
		o.Log.Warn("the disk has no room to sort the index's rows in a file first, so it is computed the slower way", "dir", j.Dir(), "needed_bytes", e.spooled(), "free_bytes", free)
		return false, nil
	}
}

// Room returns a *NoRoomError where there is no room on the disk to bring the index up to its journal.
func (x *Index) Room() error {
	has, all := x.progress()
	return roomFor(x.j, all-min(all, has), x.opts)
}

// progress is how many events the index has, of all that are durable in its journal.
func (x *Index) progress() (has, all uint64) {
	x.writing.Lock()
	defer x.writing.Unlock()
	return x.a.points.total, x.j.Durables().Totals.Events
}

// roomFor returns a *NoRoomError where there is no room to bring an index up that lacks so many rows.
func roomFor(j *journal.Journal, missing uint64, o Options) error {
	usage, err := o.FS.GetDiskUsage(j.Dir())
	e := extent{missing, extentOf(j).row}
	if err != nil || o.Passing || missing == 0 || usage.AvailBytes >= e.applied() {
		return nil
	}
	return &NoRoomError{Dir: j.Dir(), Rows: missing, Need: e.applied(), Free: usage.AvailBytes, InPlace: true}
}

// filledUp makes a *NoRoomError of an error of a disk that filled up while an index was computed.
func filledUp(err error, j *journal.Journal, o Options) error {
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return err
	}
	e := extentOf(j)
	out := &NoRoomError{Dir: j.Dir(), Rows: e.rows, Need: e.spooled(), Err: err}
	if usage, uerr := o.FS.GetDiskUsage(j.Dir()); uerr == nil {
		out.Free = usage.AvailBytes
	}
	return out
}
