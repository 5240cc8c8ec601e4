package journal

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Known is what lies beside a journal and says how far one once went: its index, and what was kept of an older index.
type Known []Claim

// Claim is one of these.
type Claim struct {
	// Of is the journal that it speaks of; the zero ID: that cannot be read any more. Then it counts for whatever journal it lies beside: what
	// that puts in doubt needlessly, if it is another one's, is less than what would be confirmed wrongly.
	Of ID
	// Offset is the newest that was known.
	Offset uint64
}

// To is the newest offset of the journal of an id that is known; 0: none.
func (k Known) To(id ID) (offset uint64) {
	for _, c := range k {
		if c.Of == id || c.Of == (ID{}) {
			offset = max(offset, c.Offset)
		}
	}
	return offset
}

// Newest is the newest offset that is known, of whatever journal; 0: none.
func (k Known) Newest() (offset uint64) {
	for _, c := range k {
		offset = max(offset, c.Offset)
	}
	return offset
}

// Keep writes c into the file dir/name, which has the bytes of a head file; after a crash it is there, or is what it was.
func (c Claim) Keep(fs vfs.FS, dir, name string) error {
	return datadir.WriteFile(fs, dir, name, encodeHead(head{id: c.Of, offset: c.Offset}))
}

// Kept is what Keep wrote; the zero Claim where that is not there or damaged: it only ever adds knowledge.
func Kept(fs vfs.FS, dir, name string) Claim {
	h, err := headIn(fs, dir, name)
	if err != nil {
		return Claim{}
	}
	return Claim{h.id, h.offset}
}
