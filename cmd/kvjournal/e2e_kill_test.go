package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// kills is how often TestKill9UnderLoad kills, and killEvents how many events are recorded between two kills.
const killEvents = 50_000

func kills(t *testing.T) int {
	t.Helper()
	text := os.Getenv("KVJOURNAL_KILLS")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KVJOURNAL_KILLS=%q: want a number from 1 on", text)
	}
	return n
}

// A recorder that is killed under load keeps what it acknowledged, and numbers what comes behind it.
func TestKill9UnderLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n := kills(t)
	_, endpoint := simulate(t, "--rate", "60000", "--objects", "20000", "--seed", "7")
	var events, durable uint64
	for kill := range n {
		rec := record(t, dir, endpoint)
		st := stats(t, dir)
		if st.DurableOffset < durable || st.Events < events {
			t.Fatalf("kill %d: durable offset %d and %d events were acknowledged; behind the restart %d and %d", kill, durable, events, st.DurableOffset, st.Events)
		}
		before := max(events, st.Events)
		eventually(t, "events are recorded", func() bool {
			st = stats(t, dir)
			return st.Events >= before+killEvents
		})
		events, durable = st.Events, st.DurableOffset
		rec.kill9(t)
		if st, ok := tryStats(t, dir); kill%2 == 0 && (!ok || st.DurableOffset < durable || st.Events < events) {
			t.Fatalf("kill %d: durable offset %d and %d events were acknowledged; at rest %+v", kill, durable, events, st)
		}
		t.Logf("kill %d at offset %d, %d events", kill+1, durable, events)
	}
	rec := record(t, dir, endpoint)
	before := stats(t, dir).Events
	eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > before })
	rec.stop(t)

	journal := readJournal(t, dir) // fails on a hole in the offsets, and on what does not decode
	st := stats(t, dir)
	if journal.events != st.Events || journal.messages != st.Messages || journal.last != st.DurableOffset || st.Events < events {
		t.Errorf("the journal holds %+v, stats say %+v", journal, st)
	}
	if st.Index.Lag != 0 || st.Damaged != 0 {
		t.Errorf("stats %+v", st)
	}
	all := gaps(t, dir)
	causes := onlyCauses(t, all, "recorder_down", "late_join", "publisher_queue")
	if causes["recorder_down"] != n || causes["late_join"] != 1 {
		t.Errorf("%d kills, gaps %v", n, causes)
	}
	if !slices.IsSortedFunc(all, func(a, b query.GapOut) int { return int(a.FirstOffsetAfter) - int(b.FirstOffsetAfter) }) {
		t.Error("gaps are not in the order of their offsets")
	}
	sameAfterRebuild(t, dir, journal.objects)
}

// sameAfterRebuild compares all answers and gaps of the index with those of one computed anew.
func sameAfterRebuild(t *testing.T, dir string, objects []object) {
	t.Helper()
	begun := time.Now()
	answers, losses := lookupLines(t, dir, "", objects), gapLines(t, dir)
	live := stats(t, dir).ObjectsLive
	middle := "offset:" + strconv.FormatUint(stats(t, dir).DurableOffset/2, 10)
	some := objects[:min(len(objects), 5000)]
	past := lookupLines(t, dir, middle, some)
	r := kvjournal(t, "rebuild", "--dir", dir)
	r.answered(t)
	if r.stdout != "" {
		t.Errorf("rebuild talks on stdout: %q", r.stdout)
	}
	t.Logf("answers for %d objects and a rebuild: %v", len(objects), time.Since(begun).Round(time.Millisecond))
	sameAnswers(t, "before and after a rebuild", answers, lookupLines(t, dir, "", objects))
	sameAnswers(t, "at "+middle+" before and after a rebuild", past, lookupLines(t, dir, middle, some))
	if after := gapLines(t, dir); !slices.Equal(losses, after) {
		t.Errorf("gaps before a rebuild\n%s\nafter\n%s", losses, after)
	}
	if after := stats(t, dir).ObjectsLive; after != live {
		t.Errorf("%d live objects before a rebuild, %d after", live, after)
	}
}
