package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// The same questions, to a recorder and to its directory at rest, on the same records: the same answers.
func TestLiveAndAtRestAnswerTheSame(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Publisher.QueueCapacity, o.Burst, o.Store.RacyClears = 256, 3000, true
		o.RestartEvery = 1600 * 1e6 // ns
		o.BurstEvery = 900 * 1e6
	})
	rec := record(t, dir, s.Endpoint())
	s.run(t)
	s.wait(t)
	truth := readTruth(t, &s.truth)
	st := quiet(t, dir)
	connected(t, dir, false)
	objects := universe(nil, truth)
	at := []string{"", "now", "offset:1", "offset:" + strconv.FormatUint(st.DurableOffset/2, 10), "offset:" + strconv.FormatUint(st.DurableOffset, 10), "-10m",
		"seq:1/" + strconv.FormatUint(seqReceived(t, dir), 10)}
	for _, c := range truth {
		at = append(at, strconv.FormatInt(c.UnixMS, 10))
	}
	live := make([][]string, len(at))
	for i, a := range at {
		live[i] = lookupLines(t, dir, a, objects)
	}
	losses, figures := gapLines(t, dir), stats(t, dir)
	// Live, the number of objects may be some time old: twenty times as long as counting them took.
	eventually(t, "the objects are counted anew", func() bool {
		figures = stats(t, dir)
		return figures.ObjectsLive == objectsLive(t, dir, figures.DurableOffset)
	})
	if len(losses) == 0 {
		t.Error("no losses to compare")
	}
	compare := func(when string) {
		t.Helper()
		for i, a := range at {
			sameAnswers(t, when+", at "+a, live[i], lookupLines(t, dir, a, objects))
		}
		if rest := gapLines(t, dir); !slices.Equal(losses, rest) {
			t.Errorf("%s: gaps live\n%s\nat rest\n%s", when, losses, rest)
		}
		rest := stats(t, dir)
		if rest.Recorder != nil || rest.Events != figures.Events || rest.Messages != figures.Messages || rest.ObjectsLive != figures.ObjectsLive ||
			rest.DurableOffset < figures.DurableOffset || rest.Sources[0].Seq != figures.Sources[0].Seq || rest.Sources[0].Marks != figures.Sources[0].Marks {
			t.Errorf("%s: stats live %+v, at rest %+v", when, figures, rest)
		}
	}
	rec.stop(t)
	compare("behind a stop in good order")

	// A recorder that meets no publisher changes nothing that may be claimed about the stream so far.
	rec = record(t, dir, s.Endpoint())
	for i, a := range at {
		if a != "" && a != "now" {
			sameAnswers(t, "behind a restart, at "+a, live[i], lookupLines(t, dir, a, objects))
		}
	}
	rec.kill9(t)
}

// objectsLive counts the objects that are there by all records up to an offset: the default moment may be an earlier one (R5).
func objectsLive(t *testing.T, dir string, offset uint64) uint64 {
	t.Helper()
	return uint64(len(kvjournal(t, "objects", "--dir", dir, "--at", "offset:"+strconv.FormatUint(offset, 10), "--output", "json").answered(t)))
}

// seqReceived is a seq of the first epoch that was received: the one before the first gap's first missing one, or the first.
func seqReceived(t *testing.T, dir string) uint64 {
	t.Helper()
	for _, g := range gaps(t, dir) {
		if g.FirstMissingSeq != nil && g.Epoch == 1 && *g.FirstMissingSeq > 1 {
			return *g.FirstMissingSeq - 1
		}
	}
	var first struct{ Epoch, Seq uint64 }
	for _, line := range logLines(t, dir, "--type", "event", "--limit", "1") {
		if err := json.Unmarshal([]byte(line), &first); err != nil {
			t.Fatal(err)
		}
	}
	if first.Epoch != 1 || first.Seq == 0 {
		t.Fatalf("the first event is of message %d/%d", first.Epoch, first.Seq)
	}
	return first.Seq
}
