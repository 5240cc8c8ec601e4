package mooncaketest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Checkpoint is what a store held at a quiet moment, and what its publisher had counted.
type Checkpoint struct {
	Checkpoint int    // 0, 1, 2 … since the publisher started
	UnixMS     int64  // on the publisher's clock; every batch so far is stamped with this time or an earlier one
	Backend    string // backend_id of all objects
	Stats      Stats
	State      iter.Seq[Object]
}

// TruthWriter writes checkpoints as JSON, one a line:
//
//	{"checkpoint":0,"unix_ms":…,"backend":"…","published_batches":…,"published_events":…,"dropped_events":…,
//	 "skipped_keyless_events":…,"state":[["<tenant, base64>","<key, base64>","cpu,disk"],…]}
//
// It is the format of conformance/captures/*.truth.jsonl.zst. Media are "cpu", "disk" or "cpu,disk".
type TruthWriter struct {
	out   io.Writer
	flush func() error
	close []func() error
	line  []byte
}

// NewTruthWriter writes to w, each line with one call of Write.
func NewTruthWriter(w io.Writer) *TruthWriter {
	return &TruthWriter{out: w, flush: func() error { return nil }}
}

// CreateTruth makes or empties the file. If the name ends in .zst it is compressed; each line is complete on disk, but
// for the frame's end, which Close writes.
func CreateTruth(path string) (*TruthWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	t := NewTruthWriter(f)
	if strings.HasSuffix(path, ".zst") {
		z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		t.out, t.flush = z, z.Flush
		t.close = append(t.close, z.Close)
	}
	t.close = append(t.close, f.Close)
	return t, nil
}

// Write writes and flushes one line.
func (t *TruthWriter) Write(c Checkpoint) error {
	backend, err := json.Marshal(c.Backend)
	if err != nil {
		return err
	}
	b := t.line[:0]
	number := func(name string, value uint64) {
		b = append(append(b, name...), ':')
		b = append(strconv.AppendUint(b, value, 10), ',')
	}
	b = append(b, '{')
	number(`"checkpoint"`, uint64(c.Checkpoint))
	number(`"unix_ms"`, uint64(c.UnixMS))
	b = append(append(append(b, `"backend":`...), backend...), ',')
	number(`"published_batches"`, c.Stats.PublishedBatches)
	number(`"published_events"`, c.Stats.PublishedEvents)
	number(`"dropped_events"`, c.Stats.DroppedEvents)
	number(`"skipped_keyless_events"`, c.Stats.SkippedKeylessEvents)
	b = append(b, `"state":[`...)
	separator := ""
	for o := range c.State {
		b = append(append(b, separator...), `["`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(o.Tenant))
		b = append(b, `","`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(o.Key))
		b = append(append(append(b, `","`...), o.media()...), `"]`...)
		separator = ","
	}
	b = append(b, "]}\n"...)
	t.line = b
	if _, err := t.out.Write(b); err != nil {
		return err
	}
	return t.flush()
}

// media is the object's media as a truth file names them.
func (o Object) media() string {
	switch {
	case o.CPU && o.Disk:
		return CPU + "," + Disk
	case o.CPU:
		return CPU
	}
	return Disk
}

// Close ends the file.
func (t *TruthWriter) Close() error {
	var errs []error
	for _, f := range t.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
