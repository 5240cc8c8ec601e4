package contender

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/bench/message"
)

// fileJournal is a plain file of groups: length u32, crc32c u32, then the group, zstd or not; in it seq u64, received i64, length u32,
// payload. Where a message lies is kept in memory.
type fileJournal struct {
	f     *os.File
	zstd  bool
	enc   *zstd.Encoder
	dec   *zstd.Decoder
	at    int64 // the file's end
	group []span
	last  uint64

	raw, packed []byte
	held        int64 // the group in raw, while reading; -1: none
}

// span is a group in the file.
type span struct {
	first  uint64 // seq
	at     int64
	length int
}

const (
	groupHead   = 8
	messageHead = 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func openFile(compress bool) func(dir string) (Journal, error) {
	return func(dir string) (Journal, error) {
		f, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		j := &fileJournal{f: f, zstd: compress, held: -1}
		if compress {
			if j.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
				return nil, err
			}
			if j.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)); err != nil {
				return nil, err
			}
		}
		if err := j.recover(); err != nil {
			f.Close()
			return nil, err
		}
		return j, nil
	}
}

// recover reads the file up to the first group that is not whole.
func (j *fileJournal) recover() error {
	r := bufio.NewReaderSize(j.f, 1<<20)
	var head [groupHead]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			break
		}
		n := int(binary.LittleEndian.Uint32(head[:]))
		if cap(j.packed) < n {
			j.packed = make([]byte, n)
		}
		j.packed = j.packed[:n]
		if _, err := io.ReadFull(r, j.packed); err != nil || crc32.Checksum(j.packed, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			break
		}
		if err := j.unpack(); err != nil {
			return err
		}
		j.group = append(j.group, span{binary.LittleEndian.Uint64(j.raw), j.at, n})
		if err := each(j.raw, func(seq uint64, _ []byte) error { j.last = seq; return nil }); err != nil {
			return err
		}
		j.at += int64(groupHead + n)
	}
	return j.f.Truncate(j.at)
}

func (j *fileJournal) unpack() (err error) {
	if !j.zstd {
		j.raw = append(j.raw[:0], j.packed...)
		return nil
	}
	j.raw, err = j.dec.DecodeAll(j.packed, j.raw[:0])
	return err
}

// each calls f with the messages of a group.
func each(raw []byte, f func(seq uint64, payload []byte) error) error {
	for len(raw) >= messageHead {
		n := messageHead + int(binary.LittleEndian.Uint32(raw[16:]))
		if n > len(raw) {
			return errors.New("a message is longer than its group")
		}
		if err := f(binary.LittleEndian.Uint64(raw), raw[messageHead:n]); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

func (j *fileJournal) Append(group []message.Message) error {
	j.held = -1
	j.raw = append(j.raw[:0], make([]byte, groupHead)...)
	for i := range group {
		m := &group[i]
		j.raw = binary.LittleEndian.AppendUint64(j.raw, m.Seq)
		j.raw = binary.LittleEndian.AppendUint64(j.raw, uint64(m.Received))
		j.raw = binary.LittleEndian.AppendUint32(j.raw, uint32(len(m.Payload())))
		j.raw = append(j.raw, m.Payload()...)
	}
	out := j.raw
	if j.zstd {
		j.packed = append(j.packed[:0], make([]byte, groupHead)...)
		j.packed = j.enc.EncodeAll(j.raw[groupHead:], j.packed)
		out = j.packed
	}
	binary.LittleEndian.PutUint32(out, uint32(len(out)-groupHead))
	binary.LittleEndian.PutUint32(out[4:], crc32.Checksum(out[groupHead:], castagnoli))
	if _, err := j.f.WriteAt(out, j.at); err != nil {
		return err
	}
	j.group = append(j.group, span{group[0].Seq, j.at, len(out) - groupHead})
	j.at += int64(len(out))
	j.last = group[len(group)-1].Seq
	return unix.Fdatasync(int(j.f.Fd()))
}

func (j *fileJournal) Sync() error           { return nil }
func (j *fileJournal) Settle() error         { return nil }
func (j *fileJournal) Last() (uint64, error) { return j.last, nil }

func (j *fileJournal) ReadAll(f func(seq uint64, payload []byte) error) error {
	for i := range j.group {
		if err := j.load(&j.group[i]); err != nil {
			return err
		}
		if err := each(j.raw, f); err != nil {
			return err
		}
	}
	return nil
}

func (j *fileJournal) load(s *span) error {
	if j.held == s.at {
		return nil
	}
	if cap(j.packed) < s.length {
		j.packed = make([]byte, s.length)
	}
	j.packed = j.packed[:s.length]
	if _, err := j.f.ReadAt(j.packed, s.at+groupHead); err != nil {
		return err
	}
	j.held = s.at
	return j.unpack()
}

func (j *fileJournal) Get(seq uint64) ([]byte, error) {
	low, high := 0, len(j.group)
	for low < high {
		if m := (low + high) / 2; j.group[m].first > seq {
			high = m
		} else {
			low = m + 1
		}
	}
	if low == 0 {
		return nil, fmt.Errorf("seq %d is not there", seq)
	}
	j.held = -1 // every call reads
	if err := j.load(&j.group[low-1]); err != nil {
		return nil, err
	}
	var out []byte
	err := each(j.raw, func(s uint64, payload []byte) error {
		if s == seq {
			out = payload
		}
		return nil
	})
	if err == nil && out == nil {
		err = fmt.Errorf("seq %d is not there", seq)
	}
	return out, err
}

func (j *fileJournal) Close() error { return j.f.Close() }
