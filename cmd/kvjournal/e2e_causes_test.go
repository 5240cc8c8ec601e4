package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// everyCause has a scenario for each cause of a loss. It does the harm for real, ends the recorder, and returns its
// directory and every line that `gaps` must have, without offsets and times.
var everyCause = map[continuity.Cause]func(*testing.T) (dir string, want []query.GapOut){
	continuity.PublisherQueue:   causePublisherQueue,
	continuity.Transport:        causeTransport,
	continuity.PublisherRestart: causePublisherRestart,
	continuity.LateJoin:         causeLateJoin,
	continuity.Disconnected:     causeDisconnected,
	continuity.Reconnect:        causeReconnect,
	continuity.RecorderDown:     causeRecorderDown,
	continuity.RecorderSlow:     causeRecorderSlow,
	continuity.TailLoss:         causeTailLoss,
	continuity.Damaged:          causeDamaged,
	continuity.Silent:           causeSilent,
	continuity.Unknown:          causeUnknown,
}

// Each cause is produced, and named rightly: cause, epoch, missing numbers and lost events are what really happened.
func TestEveryCause(t *testing.T) {
	t.Parallel()
	explained := map[string]bool{}
	for _, c := range gapCauses {
		explained[c.name] = true
	}
	known := declaredCauses(t)
	for c := continuity.CauseNone + 1; int(c) <= known; c++ {
		if everyCause[c] == nil {
			t.Errorf("no test produces the cause %s", c)
		}
		if !explained[c.String()] {
			t.Errorf("the help of gaps does not explain the cause %s", c)
		}
	}
	if known != len(everyCause) || known != len(gapCauses) {
		t.Errorf("%d causes, %d of them tested, %d explained", known, len(everyCause), len(gapCauses))
	}
	for c, produce := range everyCause {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			dir, want := produce(t)
			if count(want)[c.String()] == 0 {
				t.Fatalf("the test of %s produces other causes: %v", c, count(want))
			}
			sameGaps(t, dir, want)
		})
	}
}

// declaredCauses counts the causes in the source, but for CauseNone: one that nobody has named yet counts too.
func declaredCauses(t *testing.T) int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "journal", "continuity", "cause.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range file.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			n += len(d.Specs)
		}
	}
	return n - 1
}

// sameGaps compares the lines of `gaps` with those that must be there, and their offsets with the journal's messages.
func sameGaps(t *testing.T, dir string, want []query.GapOut) {
	t.Helper()
	got := gaps(t, dir)
	j, err := journal.OpenReadOnly(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			placed(t, j, &got[i])
			g = bare(t, got[i])
		}
		if i < len(want) {
			want[i].Source = "default"
			w = bare(t, want[i])
		}
		if g != w {
			t.Errorf("gap %d is\n%s\nand must be\n%s", i+1, g, w)
		}
	}
}

// bare is what was lost and why, without where it was and what it did.
func bare(t *testing.T, g query.GapOut) string {
	t.Helper()
	b, err := json.Marshal(query.GapOut{
		Source: g.Source, Epoch: g.Epoch, Cause: g.Cause, FirstMissingSeq: g.FirstMissingSeq, LastMissingSeq: g.LastMissingSeq,
		MissingSeqs: g.MissingSeqs, LostEvents: g.LostEvents, LostEventsMin: g.LostEventsMin, LostEventsMax: g.LostEventsMax,
		Damage: g.Damage, FirstMissingOffset: g.FirstMissingOffset, LastMissingOffset: g.LastMissingOffset,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// placed checks that a gap lies between the messages with the numbers around the missing ones.
func placed(t *testing.T, j *journal.Journal, g *query.GapOut) {
	t.Helper()
	if g.FirstOffsetAfter <= g.LastOffsetBefore || g.Received == nil || g.InDoubt == nil {
		t.Errorf("a gap without its place, time or objects in doubt: %+v", *g)
	}
	if g.TimeBefore != nil && g.TimeAfter != nil && g.TimeAfter.Before(g.TimeBefore.Time) {
		t.Errorf("a gap ends at %v, before its begin at %v", g.TimeAfter, g.TimeBefore)
	}
	seqAt := func(offset uint64) (seq uint64, readable bool) {
		r, err := j.Record(offset)
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind != journal.Message {
			t.Errorf("offset %d of a gap of cause %s is no message but %v", offset, g.Cause, r.Kind)
		}
		return r.Seq, r.HasSeq
	}
	if g.LastOffsetBefore > 0 {
		if seq, readable := seqAt(g.LastOffsetBefore); readable && g.FirstMissingSeq != nil && g.Cause != "publisher_restart" && seq != *g.FirstMissingSeq-1 {
			t.Errorf("the message before a gap of %d..%d is %d", *g.FirstMissingSeq, *g.LastMissingSeq, seq)
		}
	}
	switch {
	case g.Cause == "tail_loss", g.Cause == "silent": // shown by a poll
	case g.Cause == "damaged":
		if seq, readable := seqAt(g.FirstOffsetAfter); readable != (g.FirstMissingSeq != nil) || readable && seq != *g.FirstMissingSeq {
			t.Errorf("a damaged message with the number %d (readable: %v) is told as %+v", seq, readable, *g)
		}
	default:
		if seq, _ := seqAt(g.FirstOffsetAfter); g.LastMissingSeq != nil && seq != *g.LastMissingSeq+1 {
			t.Errorf("the message behind a gap of %d..%d is %d", *g.FirstMissingSeq, *g.LastMissingSeq, seq)
		}
	}
}

// missingSeqs is a gap of these sequence numbers.
func missingSeqs(c continuity.Cause, epoch, first, last uint64) query.GapOut {
	n := last - first + 1
	return query.GapOut{Cause: c.String(), Epoch: epoch, FirstMissingSeq: &first, LastMissingSeq: &last, MissingSeqs: &n}
}

// hole is a run of messages that the network never got.
type hole struct{ first, last, events uint64 }

// between is the gap of a hole by R3: at least the missing event ids, and at most one event more for each missing number that
// none of the lost messages needs.
func (h hole) between(c continuity.Cause) query.GapOut {
	out := missingSeqs(c, 1, h.first, h.last)
	most := h.events + *out.MissingSeqs - (h.events+63)/64
	out.LostEventsMin, out.LostEventsMax = &h.events, &most
	return out
}

func dataDir(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }

// announce makes a simulated publisher send until its recorder got something, and then waits until it has all. It returns the gap, if
// the first messages were sent before the subscription had arrived.
func announce(t *testing.T, dir string, p *mooncaketest.Publisher, put func()) []query.GapOut {
	t.Helper()
	connected(t, dir, true)
	put()
	eventually(t, "the first messages are recorded", func() bool {
		st := stats(t, dir)
		if st.Events == 0 {
			put()
			return false
		}
		return st.Index.Lag == 0 && p.QueueLength() == 0 && st.Sources[0].Seq == p.Stats().PublishedBatches
	})
	all := gaps(t, dir)
	if onlyCauses(t, all, "late_join")["late_join"] > 1 {
		t.Fatalf("gaps %+v behind the first messages", all)
	}
	return all
}

// The queue overflows while its sender is held up.
func causePublisherQueue(t *testing.T) (string, []query.GapOut) {
	const capacity, over = 64, 37
	p, err := mooncaketest.Start(mooncaketest.Options{QueueCapacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	put := func(n int) {
		for i := range n {
			p.Enqueue(mooncaketest.Change{Type: event.Stored, Tenant: "default", Medium: mooncaketest.CPU, Key: fmt.Sprint(i)})
		}
	}
	dir := dataDir(t)
	rec := record(t, dir, p.Endpoint())
	want := announce(t, dir, p, func() { put(1) })
	first := p.Stats().PublishedBatches + 1
	p.Hold(true)
	put(capacity + over)
	dropped := p.Stats().DroppedEvents
	p.Hold(false)
	if dropped != over {
		t.Fatalf("%d events were dropped of %d above the capacity", dropped, over)
	}
	recordedSeq(t, dir, first+dropped)
	put(1)
	recordedSeq(t, dir, first+dropped+1)
	rec.stop(t)
	g := missingSeqs(continuity.PublisherQueue, 1, first, first+dropped-1)
	g.LostEvents = &dropped
	return dir, append(want, g)
}

// fat makes an event large, so that few fill the sockets' buffers.
var fat = strings.Repeat("s", 32<<10)

// The publisher runs over its mark while the recorder is stopped.
func causeTransport(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 3).bind("")
	dir := dataDir(t)
	rec := w.record(dir)
	w.send(1)
	recordedSeq(t, dir, 1)
	w.salt = fat
	rec.signal(t, syscall.SIGSTOP)
	w.drop(12)
	rec.signal(t, syscall.SIGCONT)
	for range 3 {
		w.push(nothing)
	}
	recordedSeq(t, dir, w.seq)
	rec.stop(t)
	return dir, w.between(continuity.Transport)
}

// between are the gaps of all that was dropped at the mark.
func (w *wire) between(c continuity.Cause) (out []query.GapOut) {
	for _, h := range w.dropped {
		out = append(out, h.between(c))
	}
	return out
}

// The publisher's process is replaced twice: by one that is heard from its first message on, and by one that is not.
func causePublisherRestart(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 1000).bind("")
	dir := dataDir(t)
	rec := w.record(dir)
	w.send(5)
	recordedSeq(t, dir, 5)
	replaced := func(unheard int) {
		before := connections(t, dir)
		endpoint := w.endpoint
		w.close()
		w = newWire(t, 1000)
		w.send(unheard)
		w.bind(endpoint).subscribed(true)
		connectedAgain(t, dir, before)
		w.send(5)
		recordedSeq(t, dir, uint64(unheard+5))
	}
	replaced(0)
	replaced(3)
	rec.stop(t)
	return dir, []query.GapOut{
		{Cause: "publisher_restart", Epoch: 2},
		missingSeqs(continuity.PublisherRestart, 3, 1, 3),
	}
}

// The publisher has sent seven messages before anybody listens.
func causeLateJoin(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 1000).bind("")
	w.send(7)
	dir := dataDir(t)
	rec := w.record(dir)
	w.send(2)
	recordedSeq(t, dir, 9)
	rec.stop(t)
	return dir, []query.GapOut{missingSeqs(continuity.LateJoin, 1, 1, 7)}
}

// shut breaks what passes through the proxy, and lets nothing through until it is opened again.
func (p *proxy) shut(on bool) {
	p.mu.Lock()
	p.closed = on
	p.mu.Unlock()
	if on {
		p.cut(false)
	}
}

// networkFails records a publisher behind a proxy, which is cut while the publisher sends so many messages.
func networkFails(t *testing.T, meanwhile int) (w *wire, dir string, rec *process) {
	w = newWire(t, 1000).bind("")
	p, endpoint := newProxy(t, w.endpoint)
	w.endpoint = endpoint // where the recorder finds it
	dir = dataDir(t)
	rec = w.record(dir)
	w.send(5)
	recordedSeq(t, dir, 5)
	before := connections(t, dir)
	p.shut(true)
	w.subscribed(false)
	w.send(meanwhile)
	p.shut(false)
	w.subscribed(true)
	connectedAgain(t, dir, before)
	w.send(3)
	recordedSeq(t, dir, w.seq)
	return w, dir, rec
}

// The network fails, and the publisher sends meanwhile.
func causeDisconnected(t *testing.T) (string, []query.GapOut) {
	_, dir, rec := networkFails(t, 4)
	rec.stop(t)
	return dir, []query.GapOut{missingSeqs(continuity.Disconnected, 1, 6, 9)}
}

// The network fails, and then the recorder stops and starts, and nothing is sent meanwhile.
func causeReconnect(t *testing.T) (string, []query.GapOut) {
	w, dir, rec := networkFails(t, 0)
	rec.stop(t)
	w.subscribed(false)
	rec = w.record(dir)
	w.send(3)
	recordedSeq(t, dir, w.seq)
	rec.stop(t)
	none := uint64(0)
	g := query.GapOut{Cause: "reconnect", Epoch: 1, MissingSeqs: &none}
	return dir, []query.GapOut{g, g}
}

// The publisher sends while the recorder is stopped, and while it is killed.
func causeRecorderDown(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 1000).bind("")
	dir := dataDir(t)
	var want []query.GapOut
	rec := w.record(dir)
	w.send(5)
	recordedSeq(t, dir, w.seq)
	for _, end := range []func(*testing.T){rec.stop, func(t *testing.T) { rec.kill9(t) }} {
		end(t)
		w.subscribed(false)
		first := w.seq + 1
		w.send(6)
		want = append(want, missingSeqs(continuity.RecorderDown, 1, first, w.seq))
		rec = w.record(dir)
		w.send(2)
		recordedSeq(t, dir, w.seq)
	}
	rec.stop(t)
	return dir, want
}

// master is a simulated one that is driven by hand, recorded and asked.
type master struct {
	*mooncaketest.Sim
	dir  string
	rec  *process
	late []query.GapOut // of what was sent before the recorder listened
}

// newMaster has told of a few objects. looked is called when its segments were looked at.
func newMaster(t *testing.T, looked func()) *master {
	t.Helper()
	sim, err := mooncaketest.NewSim(mooncaketest.SimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Publisher().Kill() })
	admin, err := mooncaketest.NewAdmin(sim, mooncaketest.AdminOptions{OnStep: func(s mooncaketest.Step) {
		if s.Path == "/get_segments_detail" && s.Stage == mooncaketest.Ready {
			looked()
		}
	}}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	m := &master{Sim: sim, dir: dataDir(t)}
	m.rec = record(t, m.dir, sim.Endpoint(), "--master", admin.URL(), "--poll-every", "200ms")
	n := 0
	m.late = announce(t, m.dir, sim.Publisher(), func() {
		m.put(t, n)
		n++
	})
	return m
}

// put announces three objects in one message.
func (m *master) put(t *testing.T, n int) {
	t.Helper()
	var changes []mooncaketest.Change
	for i := range 3 {
		changes = append(changes, mooncaketest.Change{Type: event.Stored, Tenant: "default", Medium: mooncaketest.CPU, Key: fmt.Sprintf("%d-%d", n, i)})
	}
	if err := m.Do(changes...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Publisher().WaitIdle(ctx); err != nil {
		t.Fatal(err)
	}
}

// The last messages never arrive, and nothing comes behind them: only the counters tell.
func causeTailLoss(t *testing.T) (string, []query.GapOut) {
	m := newMaster(t, func() {})
	before := m.Publisher().Stats()
	m.Publisher().Lose(true)
	m.put(t, 1000)
	m.put(t, 1001)
	m.Publisher().Lose(false)
	after := m.Publisher().Stats()
	var told *query.GapOut
	eventually(t, "the lost tail is listed", func() bool {
		all := gaps(t, m.dir)
		if count(all)["tail_loss"] == 0 {
			return false
		}
		told = &all[len(all)-1]
		return true
	})
	m.put(t, 1002)
	recordedSeq(t, m.dir, after.PublishedBatches+1)
	m.rec.stop(t)
	g := missingSeqs(continuity.TailLoss, 1, before.PublishedBatches+1, after.PublishedBatches)
	lost := after.PublishedEvents - before.PublishedEvents
	if len(m.late) == 0 || told.LostEvents != nil {
		g.LostEvents = &lost // the ids are known to have begun at 1, so the counters tell exactly
	} else if g.LostEventsMin, g.LostEventsMax = told.LostEventsMin, told.LostEventsMax; *g.LostEventsMin > lost || *g.LostEventsMax < lost {
		t.Errorf("%d events were lost, told as %d to %d", lost, *g.LostEventsMin, *g.LostEventsMax)
	}
	return m.dir, append(m.late, g)
}

// Messages that cannot be decoded: one whose number can be read, and one whose number cannot.
func causeDamaged(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 1000).bind("")
	dir := dataDir(t)
	rec := w.record(dir)
	w.send(2)
	w.seq++
	w.raw(nil, w.number(), []byte("\xc1 is no MessagePack"))
	w.send(2)
	w.raw(w.next(3)[:2]...)
	w.send(2)
	recordedSeq(t, dir, 8)
	rec.stop(t)
	readable, none := missingSeqs(continuity.Damaged, 1, 3, 3), uint64(0)
	readable.MissingSeqs, readable.Damage = &none, event.Malformed.String()
	return dir, []query.GapOut{
		readable,
		{Cause: "damaged", Epoch: 1, MissingSeqs: &none, Damage: event.FrameCount.String()},
		hole{6, 6, 3}.between(continuity.Transport), // its number is missing, as any other
	}
}

// A segment vanishes with its objects, and no event tells.
func causeSilent(t *testing.T) (string, []query.GapOut) {
	var looks atomic.Int64
	m := newMaster(t, func() { looks.Add(1) })
	before := looks.Load()
	// With the second look from now, the one before has been judged.
	eventually(t, "the segments are looked at", func() bool { return looks.Load() >= before+2 })
	var segment string
	m.View(func(s *mooncaketest.Store, _ *mooncaketest.Publisher) { segment = s.Segments()[0].ID })
	if lost, err := m.UnmountSegment(segment); err != nil || lost == 0 {
		t.Fatalf("%d objects vanished, %v", lost, err)
	}
	eventually(t, "the loss is listed", func() bool { return count(gaps(t, m.dir))["silent"] > 0 })
	m.put(t, 1000)
	recordedSeq(t, m.dir, m.Publisher().Stats().PublishedBatches)
	m.rec.stop(t)
	return m.dir, append(m.late, query.GapOut{Cause: "silent", Epoch: 1})
}

// Numbers are missing, and events have no ids that could tell why.
func causeUnknown(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 1000).bind("")
	dir := dataDir(t)
	rec := w.record(dir)
	send := func() {
		w.seq++
		payload, err := msgpack.Marshal([]any{time.Now().UnixMilli(), []any{map[string]any{
			event.FieldEventType: "stored", event.FieldTenantID: "default", event.FieldBackendID: "b0", event.FieldMedium: "cpu", event.FieldObjectKey: "k",
		}}, 0})
		if err != nil {
			t.Fatal(err)
		}
		w.raw(nil, w.number(), payload)
	}
	send()
	send()
	recordedSeq(t, dir, 2)
	w.seq += 3
	send()
	send()
	recordedSeq(t, dir, 7)
	rec.stop(t)
	return dir, []query.GapOut{missingSeqs(continuity.Unknown, 1, 3, 5)}
}
