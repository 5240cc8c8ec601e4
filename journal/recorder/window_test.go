package recorder

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// TestWindow: messages between 3 and the next 2 are the unproven window of R5, on import too; each is judged against the
// message before it, whatever records stand between.
func TestWindow(t *testing.T) {
	fs := vfs.NewMem()
	s := newStream()
	writeCapture(t, fs, "a.kvcap",
		s.fact(capture.Connected), s.batch("a"),
		s.fact(capture.Disconnected), s.batch("b"), s.batch("c"), s.fact(capture.Connected),
		s.batch("d"), s.batch("e"),
		s.fact(capture.Disconnected), s.fact(capture.Disconnected), s.fact(capture.Connected), s.batch("f"),
		s.fact(capture.Connected), s.batch("g"))
	j := openJournal(t, fs)
	importOK(t, j, ensureSource(t, j, "s"), "a.kvcap", ImportOptions{FS: fs})
	wantVerdicts(t, j,
		"connected", "message 1/1",
		"disconnected", "message 1/2 window", "message 1/3 window", "connected behind:disconnected",
		"message 1/4 behind:reconnect gap:reconnect", "message 1/5 follows",
		"disconnected", "disconnected", "connected", "message 1/6 behind:reconnect gap:reconnect",
		"connected", "message 1/7 behind:reconnect gap:reconnect")
}

// TestDuplicatesAcrossFacts: only a message that equals the one before it is a duplicate, whatever stands between them.
func TestDuplicatesAcrossFacts(t *testing.T) {
	for facts := range 5 {
		fs := vfs.NewMem()
		s := newStream()
		records := []capture.Record{s.batch("a"), s.batch("b")}
		for range facts {
			records = append(records, s.fact(capture.Connected))
		}
		same := records[1]
		records = append(records, same, s.batch("c"), s.batch("d"))
		writeCapture(t, fs, "a.kvcap", records...)
		j := openJournal(t, fs)
		importOK(t, j, ensureSource(t, j, "s"), "a.kvcap", ImportOptions{FS: fs})
		duplicates := 0
		for i, r := range headers(t, j) {
			if r.Duplicate {
				duplicates++
				if i != 2+facts {
					t.Errorf("%d facts: offset %d is a duplicate", facts, i+1)
				}
			}
		}
		if duplicates != 1 {
			t.Errorf("%d facts: %d duplicates", facts, duplicates)
		}
	}
}

// TestWindowOpenAtTheEnd: a capture that ends in its window leaves doubt about the window's messages, whatever comes next.
func TestWindowOpenAtTheEnd(t *testing.T) {
	first := []string{"message 1/1", "disconnected", "message 1/2 window", "message 1/3 window"}
	for name, c := range map[string]struct {
		next func(s *stream) []capture.Record
		want []string
	}{
		"message": {
			func(s *stream) []capture.Record { return []capture.Record{s.batch("d"), s.batch("e")} },
			[]string{"message 1/4 behind:reconnect gap:reconnect", "message 1/5 follows"},
		},
		"connected": {
			func(s *stream) []capture.Record { return []capture.Record{s.fact(capture.Connected), s.batch("d")} },
			[]string{"connected behind:disconnected", "message 1/4 behind:reconnect gap:reconnect"},
		},
		"disconnected": {
			func(s *stream) []capture.Record {
				return []capture.Record{s.fact(capture.Disconnected), s.fact(capture.Connected)}
			},
			[]string{"disconnected behind:disconnected", "connected"},
		},
		"duplicate and connected": {
			func(s *stream) []capture.Record {
				again := *s
				again.seq, again.id, again.now = again.seq-1, again.id-1, again.now-1
				return []capture.Record{again.batch("c"), s.fact(capture.Connected)}
			},
			[]string{"message 1/3 duplicate", "connected behind:disconnected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := newStream()
			writeCapture(t, fs, "1.kvcap", s.batch("a"), s.fact(capture.Disconnected), s.batch("b"), s.batch("c"))
			writeCapture(t, fs, "2.kvcap", c.next(s)...)
			j := openJournal(t, fs)
			src := ensureSource(t, j, "s")
			importOK(t, j, src, "1.kvcap", ImportOptions{FS: fs})
			importOK(t, j, src, "2.kvcap", ImportOptions{FS: fs})
			wantVerdicts(t, j, append(first, c.want...)...)
		})
	}
}
