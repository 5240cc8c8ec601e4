package contender

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"

	"github.com/kvjournal/kvjournal/bench/message"
)

// raftWAL is hashicorp/raft-wal with its defaults: segments of 64 MiB. A message is a log entry whose index is its seq; the time of
// receipt stands before the payload.
type raftWAL struct {
	w    *wal.WAL
	meta *metadb.BoltMetaDB
	logs []*raft.Log
	buf  []byte
	got  raft.Log
}

const receivedSize = 8

func openRaftWAL(dir string) (Journal, error) {
	meta := &metadb.BoltMetaDB{}
	w, err := wal.Open(dir, wal.WithLogger(hclog.NewNullLogger()), wal.WithMetaStore(meta))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	return &raftWAL{w: w, meta: meta}, nil
}

func (j *raftWAL) Append(group []message.Message) error {
	size := 0
	for i := range group {
		size += receivedSize + len(group[i].Payload())
	}
	if cap(j.buf) < size {
		j.buf = make([]byte, 0, size)
	}
	j.buf = j.buf[:0]
	for len(j.logs) < len(group) {
		j.logs = append(j.logs, &raft.Log{})
	}
	for i := range group {
		m, start := &group[i], len(j.buf)
		j.buf = binary.LittleEndian.AppendUint64(j.buf, uint64(m.Received))
		j.buf = append(j.buf, m.Payload()...)
		*j.logs[i] = raft.Log{Index: m.Seq, Term: 1, Data: j.buf[start:]}
	}
	return j.w.StoreLogs(j.logs[:len(group)])
}

func (j *raftWAL) Sync() error           { return nil }
func (j *raftWAL) Settle() error         { return nil }
func (j *raftWAL) Last() (uint64, error) { return j.w.LastIndex() }

// Close closes its table of segments too, which it leaves open by itself.
func (j *raftWAL) Close() error { return errors.Join(j.w.Close(), j.meta.Close()) }

func (j *raftWAL) ReadAll(f func(seq uint64, payload []byte) error) error {
	first, err := j.w.FirstIndex()
	if err != nil {
		return err
	}
	last, err := j.w.LastIndex()
	if err != nil {
		return err
	}
	for seq := first; seq <= last && last > 0; seq++ {
		b, err := j.Get(seq)
		if err != nil {
			return err
		}
		if err := f(seq, b); err != nil {
			return err
		}
	}
	return nil
}

func (j *raftWAL) Get(seq uint64) ([]byte, error) {
	if err := j.w.GetLog(seq, &j.got); err != nil {
		return nil, fmt.Errorf("entry %d: %w", seq, err)
	}
	return j.got.Data[receivedSize:], nil
}
