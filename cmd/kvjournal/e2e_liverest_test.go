package main

import (
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

// seqReceived is a seq of the first epoch that was received: the one before the first gap's first missing one, or the newest.
func seqReceived(t *testing.T, dir string) uint64 {
	t.Helper()
	for _, g := range gaps(t, dir) {
		if g.FirstMissingSeq != nil && g.Epoch == 1 && *g.FirstMissingSeq > 1 {
			return *g.FirstMissingSeq - 1
		}
	}
	return stats(t, dir).Sources[0].Seq
}
