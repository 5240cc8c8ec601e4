package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

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
