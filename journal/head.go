package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// The head file, DIR/head, 40 bytes: magic "KVJHEAD1", the journal's id (16 bytes), the newest offset known to be
// durable (8 bytes, big-endian), padding (4 zero bytes), crc32c of all before it (4 bytes, little-endian).
const (
	headFile  = "head"
	headMagic = "KVJHEAD1"
	headSize  = 40
)

func encodeHead(id ID, durable uint64) []byte {
	b := append([]byte(headMagic), id[:]...)
	b = binary.BigEndian.AppendUint64(b, durable)
	b = append(b, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// errHead: what is in a head file cannot be used.
var errHead = errors.New("the head file is damaged")

// decodeHead returns what a head file's content tells: a journal's id, and an offset.
func decodeHead(b []byte) (id ID, offset uint64, err error) {
	if len(b) != headSize || string(b[:8]) != headMagic || crc32.Checksum(b[:headSize-4], castagnoli) != binary.LittleEndian.Uint32(b[headSize-4:]) {
		return ID{}, 0, errHead
	}
	return ID(b[8:24]), binary.BigEndian.Uint64(b[24:32]), nil
}

// headOf reads dir's head file, whatever journal it is of.
func headOf(fs vfs.FS, dir string) (id ID, offset uint64, err error) {
	f, err := fs.Open(fs.PathJoin(dir, headFile))
	if err != nil {
		return ID{}, 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, headSize+1))
	if err != nil {
		return ID{}, 0, err
	}
	return decodeHead(b)
}

// readHead returns the offset of dir's head file; 0 where there is none, or it is of another journal or damaged: it
// only ever adds knowledge.
func readHead(fs vfs.FS, dir string, id ID) uint64 {
	if of, offset, err := headOf(fs, dir); err == nil && of == id {
		return offset
	}
	return 0
}

// keepHead writes the head file, which says written, at most every HeadEvery while the durable offset moves, and once more at the end.
func (j *Journal) keepHead(written uint64) {
	defer j.background.Done()
	write := func() {
		d := j.Durable()
		if d == written {
			return
		}
		if err := datadir.WriteFile(j.opts.FS, j.dir, headFile, encodeHead(j.id, d)); err != nil {
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
