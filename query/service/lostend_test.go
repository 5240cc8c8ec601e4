package service_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/testkit"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/service"
)

// TestLostEndIsTold: whoever opens a directory at rest whose end is lost is told so once, whether the head file knows, or the index, or both;
// stats has it, and why does not blame the master.
func TestLostEndIsTold(t *testing.T) {
	for _, c := range []struct{ head, index bool }{{true, false}, {false, true}, {true, true}, {false, false}} {
		t.Run(fmt.Sprintf("head %v index %v", c.head, c.index), func(t *testing.T) {
			w := newWorld(t, 1)
			defer func() { w.must(errors.Join(w.x.Close(), w.j.Close())) }()
			for range 20 {
				w.some()
			}
			w.must(errors.Join(w.x.CatchUp(t.Context(), nil), w.x.Flush()))
			w.awaitHead()
			last, torn := w.j.Durable(), w.left()
			w.some()
			w.must(errors.Join(w.x.CatchUp(t.Context(), nil), w.x.Flush()))
			w.awaitHead()
			end := w.j.Durable()
			if c.head {
				w.must(datadir.WriteFile(torn, dataDir, "head", testkit.ReadFile(t, w.fs, w.fs.PathJoin(dataDir, "head"))))
			}
			if c.index {
				path := torn.PathJoin(dataDir, "index")
				w.must(torn.RemoveAll(path))
				if ok, err := vfs.Clone(w.left(), torn, path, path); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			var log bytes.Buffer
			a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: torn, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			w.must(err)
			defer func() { w.must(a.Close()) }()
			notes := 0
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "are gone from the journal's end") {
					notes++
					if !strings.Contains(line, fmt.Sprintf("first_missing_offset=%d last_missing_offset=%d", last+1, end)) || !strings.Contains(line, "kvjournal record") || !strings.Contains(line, "kvjournal repair") {
						t.Errorf("the note is %s", line)
					}
				}
			}
			stats, err := a.Stats(t.Context())
			w.must(err)
			b, err := json.Marshal(stats)
			w.must(err)
			inStats := strings.Contains(string(b), fmt.Sprintf(`"lost_end":{"first_missing_offset":%d,"last_missing_offset":%d}`, last+1, end))
			want := 0
			if c.head || c.index {
				want = 1
			}
			if notes != want || inStats != (want == 1) {
				t.Errorf("%d notes, in stats: %v\n%s\n%s", notes, inStats, log.String(), b)
			}
			if want == 0 {
				return
			}
			silent := 0
			for _, q := range w.questions(w.rng, 40) {
				w.must(a.Why(t.Context(), q.Name, query.When{}, func(out *query.WhyOut) error {
					story := ""
					for _, l := range out.Story {
						story += l.Text + "\n"
					}
					if !strings.Contains(story, fmt.Sprintf("offsets %d to %d, which had been acknowledged, are gone", last+1, end)) {
						t.Errorf("the story does not tell of the lost end: %s", story)
					}
					if out.Answer.Silent {
						silent++
						if strings.Contains(story, "changed something without an event") || !strings.Contains(story, fmt.Sprintf("lost on our own disk (offsets %d to %d", last+1, end)) {
							t.Errorf("the master is blamed: %s", story)
						}
					}
					return nil
				}))
			}
			if silent == 0 {
				t.Error("no story of a source with a master")
			}
		})
	}
}
