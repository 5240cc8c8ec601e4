package index

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/varint"
)

// A spool is a file of rows that are still to be sorted, as runs that are sorted in themselves. It does not outlive the process. A run is
// frames, one behind the other; a frame is rows, whole ones:
//
//	+------------+------------+==================================================================+
//	| length u32 | crc32c u32 | rows: shared uvarint, rest uvarint, value uvarint, rest, value   |
//	+------------+------------+==================================================================+
//
// shared is how many bytes a key has in common with the key before it in the frame. Numbers of the head are little-endian.
const (
	frameHead = 8
	// frameBytes is how many bytes of rows a frame has before it ends. A reader holds one frame: less means less memory where there are
	// many runs, and smaller reads.
	frameBytes = 16 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errSpool = errors.New("a file of the rebuild does not read as it was written")

// spool writes runs.
type spool struct {
	file  vfs.File
	w     *bufio.Writer
	at    int64
	frame []byte
	last  []byte // key of the row before, in the frame
}

// spooled is where a run lies.
type spooled struct{ from, to int64 }

func createSpool(fs vfs.FS, path string) (*spool, error) {
	f, err := datadir.Private(fs).Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &spool{file: f, w: bufio.NewWriterSize(f, 256<<10)}, nil
}

// add appends a row to the run, behind those before it in the order of keys.
func (s *spool) add(key, value []byte) error {
	if len(s.frame) == 0 {
		s.frame, s.last = append(s.frame, make([]byte, frameHead)...), s.last[:0]
	}
	shared := commonPrefix(s.last, key)
	b := binary.AppendUvarint(s.frame, uint64(shared))
	b = binary.AppendUvarint(b, uint64(len(key)-shared))
	b = binary.AppendUvarint(b, uint64(len(value)))
	b = append(b, key[shared:]...)
	s.frame = append(b, value...)
	s.last = append(s.last[:0], key...)
	if len(s.frame) < frameBytes {
		return nil
	}
	return s.endFrame()
}

// commonPrefix is how many bytes a and b begin with alike.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func (s *spool) endFrame() error {
	if len(s.frame) == 0 {
		return nil
	}
	rows := s.frame[frameHead:]
	if int64(len(rows)) > 1<<32-1 {
		return fmt.Errorf("a row of %d bytes is too long for a rebuild", len(rows))
	}
	binary.LittleEndian.PutUint32(s.frame, uint32(len(rows)))
	binary.LittleEndian.PutUint32(s.frame[4:], crc32.Checksum(rows, castagnoli))
	_, err := s.w.Write(s.frame)
	s.at += int64(len(s.frame))
	s.frame = s.frame[:0]
	if cap(s.frame) > 64*frameBytes {
		s.frame, s.last = nil, nil // one row made them so large
	}
	return err
}

// endRun ends the run that began at from.
func (s *spool) endRun(from int64) (spooled, error) {
	err := s.endFrame()
	return spooled{from, s.at}, err
}

// close ends writing.
func (s *spool) close() error {
	return errors.Join(s.w.Flush(), s.file.Close())
}

// spoolReader reads a run. The first row is there after next.
type spoolReader struct {
	file       io.ReaderAt
	at, to     int64
	buf        []byte
	rows       varint.Cursor // of the frame, behind the current row
	key, value []byte
}

// next moves to the next row; false: there is none. Key and value are valid until then.
func (r *spoolReader) next() (bool, error) {
	if len(r.rows.B) == 0 {
		if r.at == r.to {
			return false, nil
		}
		if err := r.frame(); err != nil {
			return false, err
		}
	}
	c := &r.rows
	shared, rest, value := c.Uvarint(), c.Uvarint(), c.Uvarint()
	if c.Bad || shared > uint64(len(r.key)) {
		return false, errSpool
	}
	r.key = append(r.key[:shared], c.Bytes(rest)...)
	if r.value = c.Bytes(value); c.Bad {
		return false, errSpool
	}
	return true, nil
}

func (r *spoolReader) frame() error {
	var head [frameHead]byte
	if r.to-r.at < frameHead {
		return errSpool
	}
	if _, err := r.file.ReadAt(head[:], r.at); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if r.at += frameHead; n == 0 || n > r.to-r.at {
		return errSpool
	}
	if int64(cap(r.buf)) < n || cap(r.buf) > 64*frameBytes {
		r.buf = make([]byte, n, max(n, frameBytes+frameBytes/8))
	}
	r.buf = r.buf[:n]
	if _, err := r.file.ReadAt(r.buf, r.at); err != nil {
		return err
	}
	if crc32.Checksum(r.buf, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return errSpool
	}
	r.at += n
	r.key, r.rows = r.key[:0], varint.Cursor{B: r.buf}
	return nil
}

// merge gives the rows of many runs in the order of their keys, by a tournament: tree[0] is the run with the least key, tree[n] the
// loser of the match at n. Of rows with the same key the one of the newest run is given.
type merge struct {
	runs []*spoolReader
	over []bool // no rows are left
	tree []int
	key  []byte // of the row given last
	any  bool
}

func newMerge(file io.ReaderAt, runs []spooled) (*merge, error) {
	m := &merge{over: make([]bool, len(runs)), tree: make([]int, max(1, len(runs)))}
	for i := range m.tree {
		m.tree[i] = -1
	}
	for _, at := range runs {
		m.runs = append(m.runs, &spoolReader{file: file, at: at.from, to: at.to})
	}
	for i := range runs {
		if err := m.step(i); err != nil {
			return nil, err
		}
		m.play(i)
	}
	return m, nil
}

// next returns the next row, valid until the next call; ok is false at the end.
func (m *merge) next() (key, value []byte, ok bool, err error) {
	for len(m.runs) > 0 {
		w := m.tree[0]
		if m.any {
			if err := m.step(w); err != nil {
				return nil, nil, false, err
			}
			m.play(w)
			w = m.tree[0]
		}
		if m.over[w] {
			break
		}
		r := m.runs[w]
		if m.any && bytes.Equal(r.key, m.key) {
			continue
		}
		m.any = true
		m.key = append(m.key[:0], r.key...)
		return r.key, r.value, true, nil
	}
	return nil, nil, false, nil
}

func (m *merge) step(i int) error {
	ok, err := m.runs[i].next()
	m.over[i] = !ok
	return err
}

// play lets run i play its matches, up to the root. While the tree is filled, the first to come to a match waits there.
func (m *merge) play(i int) {
	for t := (i + len(m.runs)) / 2; t > 0; t /= 2 {
		if m.tree[t] < 0 {
			m.tree[t] = i
			return
		}
		if m.before(m.tree[t], i) {
			m.tree[t], i = i, m.tree[t]
		}
	}
	m.tree[0] = i
}

func (m *merge) before(a, b int) bool {
	if m.over[a] || m.over[b] {
		return !m.over[a]
	}
	c := bytes.Compare(m.runs[a].key, m.runs[b].key)
	return c < 0 || c == 0 && a > b
}
