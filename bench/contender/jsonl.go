package contender

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/journal/event"
)

// jsonLines is a line of JSON an event, with the time of receipt and the batch's seq around it.
type jsonLines struct {
	f    *os.File
	sync bool
	buf  bytes.Buffer
	enc  *json.Encoder
	scan event.Batch
	last uint64
}

type jsonLine struct {
	Timestamp int64     `json:"timestamp"` // of receipt, ms
	Seq       uint64    `json:"seq"`
	Event     jsonEvent `json:"event"`
}

type jsonEvent struct {
	ID      uint64 `json:"event_id"`
	Type    string `json:"event_type"`
	Backend string `json:"backend_id"`
	Tenant  string `json:"tenant_id"`
	Key     string `json:"object_key,omitempty"`
	Medium  string `json:"medium,omitempty"`
	Group   string `json:"group_id,omitempty"`
	Time    int64  `json:"time"`
}

func openJSONL(sync bool) func(dir string) (Journal, error) {
	return func(dir string) (Journal, error) {
		f, err := os.OpenFile(filepath.Join(dir, "events.jsonl"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, err
		}
		j := &jsonLines{f: f, sync: sync}
		j.enc = json.NewEncoder(&j.buf)
		j.last, err = lastLine(f)
		return j, err
	}
}

// lastLine is the seq in the last whole line.
func lastLine(f *os.File) (uint64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	tail := make([]byte, min(info.Size(), 64<<10))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return 0, err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	var line jsonLine
	if len(tail) == 0 {
		return 0, nil
	}
	tail = tail[:len(tail)-1]
	err = json.Unmarshal(tail[bytes.LastIndexByte(tail, '\n')+1:], &line)
	return line.Seq, err
}

func (j *jsonLines) Append(group []message.Message) error {
	j.buf.Reset()
	for i := range group {
		m := &group[i]
		j.scan.Scan(m.Frames)
		for k := range j.scan.Events {
			e := &j.scan.Events[k]
			line := jsonLine{Timestamp: m.Received / 1e6, Seq: m.Seq, Event: jsonEvent{
				ID: e.ID, Type: e.Type.String(), Backend: string(e.Backend), Tenant: string(e.Tenant), Key: string(e.Key),
				Medium: string(e.Medium), Group: string(e.Group), Time: m.Time,
			}}
			if err := j.enc.Encode(&line); err != nil {
				return err
			}
		}
		j.last = m.Seq
	}
	if _, err := j.f.Write(j.buf.Bytes()); err != nil {
		return err
	}
	if !j.sync {
		return nil
	}
	return unix.Fdatasync(int(j.f.Fd()))
}

func (j *jsonLines) Sync() error                { return nil }
func (j *jsonLines) Settle() error              { return nil }
func (j *jsonLines) Last() (uint64, error)      { return j.last, nil }
func (j *jsonLines) Get(uint64) ([]byte, error) { return nil, ErrNotHere }
func (j *jsonLines) Close() error               { return j.f.Close() }

func (j *jsonLines) ReadAll(f func(seq uint64, payload []byte) error) error {
	if _, err := j.f.Seek(0, 0); err != nil {
		return err
	}
	lines := bufio.NewScanner(j.f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line jsonLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return err
		}
		if err := f(line.Seq, nil); err != nil {
			return err
		}
	}
	return lines.Err()
}
