package recorder

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

const (
	testDir  = "data"
	testTime = int64(1_790_000_000_000) // ms
)

// openJournal opens the journal of testDir in fs, and closes it at the end of the test.
func openJournal(t *testing.T, fs vfs.FS) *journal.Journal {
	t.Helper()
	j, err := journal.Open(testDir, nil, journal.Options{FS: fs, NoSealer: true, MemTableSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func ensureSource(t *testing.T, j *journal.Journal, name string) journal.Source {
	t.Helper()
	s, err := j.EnsureSource(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stream makes the records of one publisher.
type stream struct {
	encoder *event.Encoder
	now     int64 // ms
	seq, id uint64
}

func newStream() *stream {
	return &stream{encoder: event.NewEncoder(event.EncodeOptions{ObjectKey: true}), now: testTime}
}

// batch is the publisher's next message: a `stored` for each key.
func (s *stream) batch(keys ...string) capture.Record {
	s.now++
	s.seq++
	fields := make([]event.Fields, len(keys))
	for i, k := range keys {
		s.id++
		fields[i] = event.Fields{Type: event.Stored, ID: s.id, Timestamp: s.now, Tenant: "default", Backend: "b", Medium: "cpu", Key: k}
	}
	seq := event.SeqFrame(s.seq)
	return capture.Record{Kind: capture.Message, Received: s.now * 1e6, Frames: [][]byte{{}, seq[:], s.encoder.AppendPayload(nil, s.now, fields, 0)}}
}

// fact is a record of the connection.
func (s *stream) fact(k capture.Kind) capture.Record {
	s.now++
	return capture.Record{Kind: k, Received: s.now * 1e6}
}

// large is the publisher's next message with a key of so many bytes.
func (s *stream) large(bytes int) capture.Record {
	return s.batch(strings.Repeat("x", bytes) + fmt.Sprint(s.seq))
}

func writeCapture(t *testing.T, fs vfs.FS, path string, records ...capture.Record) {
	t.Helper()
	f, err := capture.Create(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := f.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// dump lists all records of the journal: offset, header and the frames' checksums.
func dump(t *testing.T, j *journal.Journal) []string {
	t.Helper()
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for at := uint64(0); at < j.Durable(); {
		b, err := j.NextBlock(nil, at)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len() {
			frames, err := b.Frames(i, nil, new([8]byte))
			if err != nil {
				t.Fatal(err)
			}
			sums := make([]uint32, len(frames))
			for k, f := range frames {
				sums[k] = crc32.ChecksumIEEE(f)
			}
			out = append(out, fmt.Sprintf("%d %+v %x", b.First+uint64(i), *b.Header(i), sums))
		}
		at = b.Last()
	}
	return out
}

// headers lists the headers of all records.
func headers(t *testing.T, j *journal.Journal) []journal.Record {
	t.Helper()
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	var out []journal.Record
	for o := uint64(1); o <= j.Durable(); o++ {
		r, err := j.Record(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// verdictText is what a record's header says, in a few words.
func verdictText(r *journal.Record) string {
	out := r.Kind.String()
	add := func(on bool, word string) {
		if on {
			out += " " + word
		}
	}
	if r.Kind == journal.Message {
		out += fmt.Sprintf(" %d/%d", r.Epoch, r.Seq)
	}
	add(r.Duplicate, "duplicate")
	add(r.Damage != event.None, "damaged")
	add(r.Follows, "follows")
	add(r.InWindow, "window")
	add(r.Mark == continuity.MarkBefore, "before:"+r.MarkCause.String())
	add(r.Mark == continuity.MarkBehind, "behind:"+r.MarkCause.String())
	add(r.Gap.Cause != continuity.CauseNone, "gap:"+r.Gap.Cause.String())
	add(r.Gap.Missing() > 0, fmt.Sprintf("%d..%d", r.Gap.First, r.Gap.Last))
	return out
}

func wantVerdicts(t *testing.T, j *journal.Journal, want ...string) {
	t.Helper()
	var got []string
	for _, r := range headers(t, j) {
		got = append(got, verdictText(&r))
	}
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("offset %d\n got %q\nwant %q", i+1, g, w)
		}
	}
}
