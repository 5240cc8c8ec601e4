package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/query"
)

// killEvents is how many events are recorded between two kills, at least.
const killEvents = 50_000

// killsALife is how many kills a directory lives through before all of it is looked at, and another begins.
const killsALife = 10

// truthMoments is at how many moments of a life the answers are held against the truth.
const truthMoments = 3

// kills is how often TestKill9UnderLoad kills.
func kills(t *testing.T) int { return fromEnvironment(t, "KVJOURNAL_KILLS", 5) }

// fromEnvironment is a number from 1 on that the environment may set.
func fromEnvironment(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number from 1 on", name, text)
	}
	return n
}

// killSeed says which seed a storm has; KVJOURNAL_SEED sets it.
func killSeed(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64() >> 1
	if s := os.Getenv("KVJOURNAL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("KVJOURNAL_SEED: %v", err)
		}
	}
	t.Logf("KVJOURNAL_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// loads are the publishers of the lives, in turn. Where the truth is kept, no confirmed answer may differ from it.
var loads = []struct {
	name   string
	sim    []string
	truth  bool
	master bool
	prunes bool     // each start, and a command that runs when the kill comes
	causes []string // beside those that a kill and a start may have
}{
	{"a plain load", []string{"--rate", "60000"}, true, false, false, nil},
	{"restarts of the publisher", []string{"--rate", "50000", "--restart-every", "4s"}, true, false, false, []string{"publisher_restart", "disconnected", "reconnect"}},
	{"a queue that drops", []string{"--rate", "40000", "--queue-capacity", "300", "--burst", "60000"}, true, false, false, nil},
	{"a master beside, that changes things silently", []string{"--rate", "40000", "--silent-removals", "20"}, false, true, false, []string{"tail_loss", "silent", "reconnect"}},
	{"pruning all the while", []string{"--rate", "40000"}, true, false, true, []string{"publisher_restart", "transport"}},
}

// TestKill9UnderLoad kills a recorder under load at random moments, with at least 50,000 events between, and starts it again: all that was
// acknowledged is there, as it was, and no offset is used twice. Behind each tenth kill and the last a rebuild is killed too, every answer and gap
// equals that of an index computed anew, and what is confirmed is true.
func TestKill9UnderLoad(t *testing.T) {
	rng, todo, begun := killSeed(t), kills(t), time.Now()
	for life, done := fromEnvironment(t, "KVJOURNAL_LIFE", 1)-1, 0; done < todo; life++ {
		n := min(killsALife, todo-done)
		load := &loads[life%len(loads)]
		// A subtest each: its processes end with it.
		if !t.Run(fmt.Sprintf("life %d: %s", life+1, load.name), func(t *testing.T) {
			l := newKilled(t, rng, life)
			for kill := range n {
				l.kill()
				t.Logf("kill %d of %d at offset %d, %d events, %v", done+kill+1, todo, l.durable, l.events, time.Since(begun).Round(time.Second))
			}
			l.look(n)
		}) {
			return
		}
		done += n
	}
}

// killed is a directory and what is known of it.
type killed struct {
	t        *testing.T
	rng      *rand.Rand
	dir      string
	life     int
	sim      *process
	endpoint string
	truth    string // file, empty: none
	args     []string

	durable, events uint64 // as stats showed last
	horizon         uint64 // as well
	pruneTo         uint64 // offset that was pruned to last, or was to be
	sums            []recordSum
	pruned          int // kills between which the horizon moved
}

// recordSum is the sum of the records behind one offset up to another.
type recordSum struct{ from, end, sum uint64 }

func newKilled(t *testing.T, rng *rand.Rand, life int) *killed {
	l := &killed{t: t, rng: rng, life: life, dir: filepath.Join(t.TempDir(), "data")}
	load := &loads[life%len(loads)]
	args := append([]string{"--objects", "3000", "--seed", strconv.Itoa(1 + rng.IntN(1000))}, load.sim...)
	if load.truth {
		l.truth = filepath.Join(t.TempDir(), "truth")
		args = append(args, "--truth", l.truth)
	}
	if load.master {
		args = append(args, "--admin", "127.0.0.1:0")
	}
	l.sim, l.endpoint = simulate(t, args...)
	if load.master {
		l.args = []string{"--master", l.sim.says(t, adminOn)}
	}
	if load.prunes {
		l.dir, _ = agedDir(t, "default")
	}
	return l
}

// kill starts the recorder, lets it record, and kills it at a random moment.
func (l *killed) kill() {
	l.t.Helper()
	rec := record(l.t, l.dir, l.endpoint, l.args...)
	st := l.acknowledged("behind the restart")
	before := max(l.events, st.Events)
	eventually(l.t, "events are recorded", func() bool {
		st = stats(l.t, l.dir)
		return st.Events >= before+killEvents
	})
	l.durable, l.events = st.DurableOffset, st.Events
	var prune *process
	if loads[l.life%len(loads)].prunes {
		prune = l.prune()
	}
	time.Sleep(time.Duration(l.rng.IntN(200)) * time.Millisecond) // a random moment, no condition
	rec.kill9(l.t)
	if prune != nil { // it loses the recorder, or prunes itself: it may just end
		prune.cmd.Process.Kill()
		<-prune.ended
	}
	if l.rng.IntN(2) == 0 {
		l.sum()
	}
	if l.rng.IntN(4) == 0 {
		l.acknowledged("at rest")
	}
}

// prune starts a prune of the next part of the hours that were there. Half of the time it waits until the horizon has moved: what is left to
// do then is to compute the index anew, or to trim it.
func (l *killed) prune() *process {
	l.t.Helper()
	to := max(l.horizon, l.pruneTo) + 4*agedHour/(killsALife+2)
	l.pruneTo = to
	p := start(l.t, kvjournalBinary, "prune", "--dir", l.dir, "--before", fmt.Sprintf("offset:%d", to))
	if l.rng.IntN(2) == 0 {
		for end := time.Now().Add(patience); time.Now().Before(end); { // it may have to wait for one that a kill interrupted
			if st := stats(l.t, l.dir); st.Horizon != nil && st.Horizon.Offset > l.horizon {
				break
			}
		}
	}
	return p
}

// acknowledged returns what stats show, which must be all that was acknowledged before, by the head file too.
func (l *killed) acknowledged(when string) *query.StatsOut {
	l.t.Helper()
	head := headOf(l.t, l.dir) // first: a recorder moves it on
	st := stats(l.t, l.dir)
	if st.DurableOffset < max(l.durable, head) || st.Events < l.events {
		l.t.Fatalf("LOST: durable offset %d (head file %d) and %d events were acknowledged; %s %d and %d", l.durable, head, l.events, when, st.DurableOffset, st.Events)
	}
	now := uint64(0)
	if st.Horizon != nil {
		now = st.Horizon.Offset
	}
	if now < l.horizon {
		l.t.Fatalf("the horizon was at %d, %s it is at %d", l.horizon, when, now)
	}
	if now > l.horizon {
		l.horizon, l.pruned = now, l.pruned+1
	}
	return st
}

// headOf is what the head file knows to be durable.
func headOf(t *testing.T, dir string) uint64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "head"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil || len(b) != 40 {
		t.Fatalf("head file: %d bytes, %v", len(b), err)
	}
	return binary.BigEndian.Uint64(b[24:])
}

// sum adds the sum of what came since the last one.
func (l *killed) sum() {
	l.t.Helper()
	from := uint64(0)
	if n := len(l.sums); n > 0 {
		from = l.sums[n-1].end
	}
	s := sumRecords(l.t, l.dir, from, 0)
	if s.end < l.durable {
		l.t.Fatalf("LOST: the journal ends at %d, %d was acknowledged", s.end, l.durable)
	}
	l.sums = append(l.sums, s)
}

// sumRecords sums headers and frames of the records behind from, or behind the horizon, up to to (0: all), and fails where one is missing.
func sumRecords(t *testing.T, dir string, from, to uint64) recordSum {
	t.Helper()
	j, err := journal.OpenReadOnly(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if to == 0 {
		to = j.Durable()
	}
	from = max(from, j.Horizon().Offset)
	hash := fnv.New64a()
	var b *journal.Block
	var frames [][]byte
	end := from
	for end < to {
		if b, err = j.NextBlock(b, end); err != nil {
			t.Fatalf("LOST: behind offset %d of %d: %v", end, to, err)
		}
		for i := range b.Len() {
			offset := b.First + uint64(i)
			if offset <= end {
				continue
			}
			if offset != end+1 {
				t.Fatalf("LOST: offset %d comes behind %d", offset, end)
			}
			if frames, err = b.Frames(i, frames[:0], new([8]byte)); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(hash, "%d %+v", offset, *b.Header(i))
			for _, f := range frames {
				hash.Write(f)
			}
			if end = offset; end == to {
				break
			}
		}
	}
	return recordSum{from, end, hash.Sum64()}
}

// look looks at all of the directory, behind so many kills.
func (l *killed) look(kills int) {
	t := l.t
	rec := record(t, l.dir, l.endpoint, l.args...)
	st := l.acknowledged("behind the last restart")
	eventually(t, "events are recorded", func() bool { return stats(t, l.dir).Events > st.Events })
	rec.stop(t)
	l.acknowledged("at rest")
	for _, was := range l.sums {
		if was.from < l.horizon {
			continue // of what was pruned in part there is no sum
		}
		if now := sumRecords(t, l.dir, was.from, was.end); now != was {
			t.Fatalf("WRONG: the records from %d to %d are others than they were", was.from+1, was.end)
		}
	}
	all := readJournal(t, l.dir) // fails on a hole in the offsets, and on what does not decode
	st = stats(t, l.dir)
	if all.events != st.Events || l.horizon == 0 && all.messages != st.Messages || all.last != st.DurableOffset || st.Events < l.events || st.Index.Lag != 0 || st.Damaged != 0 {
		t.Errorf("the journal holds %+v, stats say %+v", all, st)
	}
	if prunes := loads[l.life%len(loads)].prunes; prunes && l.pruned < kills/10 || !prunes && l.pruned > 0 {
		t.Errorf("the horizon moved between %d of %d kills", l.pruned, kills)
	}
	l.losses(kills)
	objects := all.objects
	l.rng.Shuffle(len(objects), func(a, b int) { objects[a], objects[b] = objects[b], objects[a] })
	objects = objects[:min(len(objects), 2000)]
	l.true(objects)
	rebuild := start(t, kvjournalBinary, "rebuild", "--dir", l.dir)
	time.Sleep(time.Duration(l.rng.IntN(1500)) * time.Millisecond) // a random moment, no condition
	if rebuild.running() {
		rebuild.kill9(t)
	}
	sameAfterRebuild(t, l.dir, objects)
}

// losses checks the gaps behind so many kills.
func (l *killed) losses(kills int) {
	t := l.t
	losses := gaps(t, l.dir)
	causes := onlyCauses(t, losses, append([]string{"recorder_down", "recorder_slow", "late_join", "publisher_queue", "transport", "reconnect"}, loads[l.life%len(loads)].causes...)...)
	down := causes["recorder_down"] + causes["reconnect"] // the latter where nothing was published meanwhile: the numbers go on (R5)
	if causes["recorder_down"] > kills || causes["late_join"] > 1 || causes["publisher_restart"] == 0 && down < kills {
		t.Errorf("%d kills, gaps %v", kills, causes)
	}
	if !slices.IsSortedFunc(losses, func(a, b query.GapOut) int { return int(a.FirstOffsetAfter) - int(b.FirstOffsetAfter) }) {
		t.Error("gaps are not in the order of their offsets")
	}
}

// true holds confirmed answers against what the publisher's store held.
func (l *killed) true(objects []object) {
	t := l.t
	if l.truth == "" {
		return
	}
	f, err := os.Open(l.truth)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	truth := slices.DeleteFunc(readTruth(t, f), func(c checkpoint) bool { return c.UnixMS <= l.earliest() })
	l.rng.Shuffle(len(truth), func(a, b int) { truth[a], truth[b] = truth[b], truth[a] })
	confirmed := 0
	for _, n := range judgeAll(t, l.dir, truth[:min(len(truth), truthMoments)], objects) {
		confirmed += n.confirmed
	}
	t.Logf("%d confirmed answers are true, at %d moments", confirmed, min(len(truth), truthMoments))
}

// earliest is the publisher time (ms) of the horizon, 0 where there is none.
func (l *killed) earliest() int64 {
	if h := stats(l.t, l.dir).Horizon; h != nil && h.Time != nil {
		return h.Time.UnixMilli()
	}
	return 0
}

// sameAfterRebuild compares all answers and gaps of the index with those of one computed anew.
func sameAfterRebuild(t *testing.T, dir string, objects []object) {
	t.Helper()
	begun := time.Now()
	answers, losses := lookupLines(t, dir, "", objects), gapLines(t, dir)
	st := stats(t, dir)
	live, from := st.ObjectsLive, uint64(0)
	if st.Horizon != nil {
		from = st.Horizon.Offset
	}
	middle := "offset:" + strconv.FormatUint((from+st.DurableOffset)/2, 10)
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
