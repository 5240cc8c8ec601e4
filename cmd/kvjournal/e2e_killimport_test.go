package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestKill9WhileImporting kills imports at random moments until one gets to its end: it goes on where it was, and the answers and gaps
// are those of an import that was not killed.
func TestKill9WhileImporting(t *testing.T) {
	rng, todo := killSeed(t), max(2, kills(t)/10)
	base := t.TempDir()
	path := filepath.Join(base, "load.kvcap")
	if r := runCommand(t, exec.Command(mooncakesimBinary, "--capture", path, "--events", "200000", "--objects", "3000", "--lose", "500-520"), ""); r.code != 0 {
		t.Fatal(r.stderr)
	}
	whole := filepath.Join(base, "whole")
	begun := time.Now()
	kvjournal(t, "import", "--dir", whole, path).answered(t)
	took := time.Since(begun)
	objects := readJournal(t, whole).objects
	objects = objects[:min(len(objects), 2000)]
	answers, losses := lookupLines(t, whole, "", objects), gapLines(t, whole)
	for done := 0; done < todo; {
		dir, durable, killed := filepath.Join(t.TempDir(), "killed"), uint64(0), 0
		for {
			p := start(t, kvjournalBinary, "import", "--dir", dir, path)
			select {
			case <-p.ended:
			case <-time.After(time.Duration(rng.Int64N(int64(took)))): // a random moment, no condition
				if err := p.cmd.Process.Kill(); err == nil {
					killed++
				} else if !errors.Is(err, os.ErrProcessDone) { // it ended at that moment
					t.Fatal(err)
				}
				p.wait(t)
			}
			if st, ok := tryStats(t, dir); ok && st.DurableOffset < durable {
				t.Fatalf("LOST: offset %d was acknowledged, the journal ends at %d", durable, st.DurableOffset)
			} else if ok {
				durable = st.DurableOffset
			}
			if p.cmd.ProcessState.Success() {
				break
			}
			if again := p.talk.String(); !strings.Contains(again, "imported into this source before") {
				continue
			}
			break // it was killed behind its last record
		}
		done += killed
		t.Logf("%d of %d kills; at offset %d", done, todo, durable)
		if killed == 0 {
			continue
		}
		sameAnswers(t, "an import that was killed, and one that was not", answers, lookupLines(t, dir, "", objects))
		if got := gapLines(t, dir); !slices.Equal(got, losses) {
			t.Errorf("gaps\n%s\nwant\n%s", got, losses)
		}
	}
}
