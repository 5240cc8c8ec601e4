package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// The head file, DIR/head, 40 bytes: magic "KVJHEAD1", the journal's id (16 bytes), the newest offset known to be
// durable (8 bytes, big-endian), the sum of the sources' rows (sumOf, 4 bytes, big-endian; 0: not known, as the first programs wrote it), crc32c of
// all before it (4 bytes, little-endian).
const (
	headFile  = "head"
	headMagic = "KVJHEAD1"
	headSize  = 40
)

// head is what a head file says.
type head struct {
	id      ID
	offset  uint64
	sources uint32
}

func encodeHead(h head) []byte {
	b := append([]byte(headMagic), h.id[:]...)
	b = binary.BigEndian.AppendUint64(b, h.offset)
	b = binary.BigEndian.AppendUint32(b, h.sources)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// errHead: what is in a head file cannot be used.
var errHead = errors.New("the head file is damaged")

// decodeHead returns what a head file's content tells.
func decodeHead(b []byte) (head, error) {
	if len(b) != headSize || string(b[:8]) != headMagic || crc32.Checksum(b[:headSize-4], castagnoli) != binary.LittleEndian.Uint32(b[headSize-4:]) {
		return head{}, errHead
	}
	return head{ID(b[8:24]), binary.BigEndian.Uint64(b[24:32]), binary.BigEndian.Uint32(b[32:36])}, nil
}

// headOf reads dir's head file, whatever journal it is of.
func headOf(fs vfs.FS, dir string) (head, error) { return headIn(fs, dir, headFile) }

// headIn reads a file of the head file's bytes.
func headIn(fs vfs.FS, dir, name string) (head, error) {
	f, err := fs.Open(fs.PathJoin(dir, name))
	if err != nil {
		return head{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, headSize+1))
	if err != nil {
		return head{}, err
	}
	return decodeHead(b)
}

// readHead returns what dir's head file says of the journal of that id; the zero head where there is none, or it is of another journal or
// damaged: it only ever adds knowledge.
func readHead(fs vfs.FS, dir string, id ID) head {
	if h, err := headOf(fs, dir); err == nil && h.id == id {
		return h
	}
	return head{}
}

// sumOf tells sets of sources apart by what a loss must not take unseen: which there are, and which have a master. It is never 0.
func sumOf(sources []Source) uint32 {
	sources = slices.SortedFunc(slices.Values(sources), func(a, b Source) int { return cmp.Compare(a.ID, b.ID) })
	b := []byte{}
	for _, s := range sources {
		b = binary.BigEndian.AppendUint32(b, s.ID)
		if len(s.Masters) > 0 {
			b = append(b, 'm')
		}
		b = append(b, ';')
	}
	return max(1, crc32.Checksum(b, castagnoli))
}

// writeHead has the head file say how far the journal goes, and which sources it has. It never says less than it did.
func (j *Journal) writeHead() error {
	j.headMu.Lock()
	defer j.headMu.Unlock()
	h := head{j.id, max(j.Durable(), j.head.offset), sumOf(j.Sources())}
	if h == j.head {
		return nil
	}
	if err := datadir.WriteFile(j.opts.FS, j.dir, headFile, encodeHead(h)); err != nil {
		return err
	}
	j.head = h
	return nil
}

// keepHead writes the head file, which says written, at most every HeadEvery while the durable offset moves, and once more at the end.
func (j *Journal) keepHead(written uint64) {
	defer j.background.Done()
	write := func() {
		d := j.Durable()
		if err := j.writeHead(); err != nil {
			j.opts.Log.Error("writing the head file", "error", err)
			return
		}
		written = d
	}
	for {
		if _, err := j.WaitDurable(j.stopping, written); err != nil {
			write()
			return
		}
		write()
		t := time.NewTimer(j.opts.HeadEvery)
		select {
		case <-j.stopping.Done():
			t.Stop()
			write()
			return
		case <-t.C:
		}
	}
}

// headWith is what the head file of a journal that was copied, or is given another id, must say: what its own and an index knew of a lost end is
// kept, and of the sources what is certain.
func (j *Journal) headWith(known Known) head {
	last, own := j.Durable(), readHead(j.opts.FS, j.dir, j.id)
	most := max(known.To(j.id), own.offset)
	switch {
	case most <= last:
		return head{j.id, last, sumOf(j.Sources())}
	case own.offset == most:
		return own
	}
	return head{id: j.id, offset: most}
}

// RenewHead writes the head file of a journal that is a copy and open for reading: what its head file and an index know of a lost end is kept.
func (j *Journal) RenewHead(known Known) error {
	return datadir.WriteFile(j.opts.FS, j.dir, headFile, encodeHead(j.headWith(known)))
}
