package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

const (
	worldDir = "data"
	backend0 = "b0"
)

var worldStart = time.Unix(1_790_000_000, 0)

// object names one of a world's truth: its tenant and its key.
type name struct{ tenant, key string }

// world is a master, its publisher's queue, the wire, and a recorder with its journal and index, all driven by hand: nothing happens
// unless a test, or the hook of a step, makes it happen. Time is the world's own.
type world struct {
	t       *testing.T
	j       *journal.Journal
	x       *index.Index
	source  uint32
	feed    *recorder.Feed
	encoder *event.Encoder
	now     time.Time
	backend string

	truth   map[name]word // present media only; 0: a put that has not ended
	queue   []mooncaketest.Change
	limit   int
	taken   []mooncaketest.Change
	seq, id uint64
	counted mooncake.Status // what a poll sees
	sent    mooncake.Status // with what was sent and is not counted yet
	wire    []sent
	up      bool // the subscriber's connection stands
	process int

	// hook is called before and inside every call of the runner, with the place's name.
	hook func(at string)
	// pass moves time by at most d, while something is waited for.
	pass func(d time.Duration)

	// announced is what the stream has told by the newest message sent, what was dropped from the queue before it included; states holds
	// it for each message that was received, by its offset.
	announced map[name]word
	dropped   []mooncaketest.Change // behind what is taken and not sent yet
	states    map[uint64]map[name]word

	standby, off bool
	silentKeys   []string // listed though the store has no such key
	hidden       []string // not listed though the store has them
	asked        []string
	calls        []string
}

// sent is a record on its way, and what the stream has told by then.
type sent struct {
	capture.Record
	state map[name]word
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: worldStart, backend: backend0, truth: map[name]word{}, announced: map[name]word{}, states: map[uint64]map[name]word{}, limit: 1 << 16, process: 1,
		encoder: event.NewEncoder(event.EncodeOptions{ObjectKey: true})}
	w.hook = func(string) {}
	w.pass = func(d time.Duration) { w.now = w.now.Add(d) }
	fs := vfs.NewMem()
	var err error
	if w.j, err = journal.Open(worldDir, nil, journal.Options{FS: fs, NoSealer: true, MemTableSize: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	if w.x, err = index.Open(w.j, true, index.Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.x.Close(), w.j.Close()); err != nil {
			t.Error(err)
		}
	})
	s, err := w.j.EnsureSource("s", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.source = s.ID
	if w.feed, err = recorder.NewFeed(w.j, s.ID); err != nil {
		t.Fatal(err)
	}
	w.sent.Enabled, w.counted.Enabled = true, true
	w.write(func(g *journal.Group) error { w.feed.Started(g, w.now.UnixNano()); return nil })
	return w
}

// write appends to the journal, and indexes it.
func (w *world) write(f func(g *journal.Group) error) error {
	w.t.Helper()
	g := w.j.NewGroup()
	ferr := f(g)
	w.feed.Save(g)
	last := g.Last()
	if err := g.Commit(); err != nil {
		w.t.Fatal(err)
	}
	if last > w.j.Durable() {
		if _, err := w.j.WaitDurable(context.Background(), last-1); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.x.CatchUp(context.Background(), nil); err != nil {
		w.t.Fatal(err)
	}
	return ferr
}

// do changes the truth and puts the changes into the publisher's queue.
func (w *world) do(changes ...mooncaketest.Change) {
	for _, c := range changes {
		w.silently(c)
		if len(w.queue) == w.limit {
			if w.dropped = append(w.dropped, w.queue[0]); len(w.taken) == 0 {
				w.announce(nil)
			}
			w.queue = w.queue[1:]
			w.seq++
			w.sent.DroppedEvents++
			w.counted.DroppedEvents++
		}
		w.queue = append(w.queue, c)
	}
}

// silently changes the truth alone.
func (w *world) silently(c mooncaketest.Change) { apply(w.truth, c) }

// announce takes changes, and behind them those that were dropped meanwhile, as told.
func (w *world) announce(changes []mooncaketest.Change) {
	for _, c := range append(slices.Clone(changes), w.dropped...) {
		apply(w.announced, c)
	}
	w.dropped = nil
}

func apply(truth map[name]word, c mooncaketest.Change) {
	n := name{c.Tenant, c.Key}
	m := onCPU
	if c.Medium == disk {
		m = onDisk
	}
	switch c.Type {
	case event.Stored:
		truth[n] |= m
	case event.Removed:
		if truth[n] &^= m; truth[n] == 0 {
			delete(truth, n)
		}
	}
}

func stored(key, medium string) mooncaketest.Change {
	return mooncaketest.Change{Type: event.Stored, Tenant: event.DefaultTenant, Key: key, Medium: medium}
}

func removed(key, medium string) mooncaketest.Change {
	return mooncaketest.Change{Type: event.Removed, Tenant: event.DefaultTenant, Key: key, Medium: medium}
}

// take takes a batch from the queue.
func (w *world) take() {
	if len(w.taken) == 0 {
		n := min(64, len(w.queue))
		w.taken = slices.Clone(w.queue[:n])
		w.queue = w.queue[n:]
	}
}

// send numbers what was taken and sends it; it is counted by count, or before the next is sent.
func (w *world) send(lost bool) {
	if len(w.taken) == 0 {
		return
	}
	w.count()
	w.seq++
	fields := make([]event.Fields, len(w.taken))
	for i, c := range w.taken {
		w.id++
		fields[i] = event.Fields{Type: c.Type, ID: w.id, Timestamp: w.now.UnixMilli(), Backend: w.backend, Tenant: c.Tenant, Key: c.Key, Medium: c.Medium}
	}
	seq := event.SeqFrame(w.seq)
	rec := capture.Record{Kind: capture.Message, Frames: [][]byte{{}, append([]byte{}, seq[:]...), w.encoder.AppendPayload(nil, w.now.UnixMilli(), fields, 0)}}
	w.sent.PublishedBatches++
	w.sent.PublishedEvents += uint64(len(w.taken))
	w.announce(w.taken)
	w.taken = nil
	if !lost && w.up {
		w.wire = append(w.wire, sent{rec, maps.Clone(w.announced)})
	}
}

func (w *world) count() {
	dropped := w.counted.DroppedEvents
	w.counted = w.sent
	w.counted.DroppedEvents = dropped
}

// receive takes the oldest record from the wire into the journal.
func (w *world) receive() {
	if len(w.wire) == 0 {
		return
	}
	rec := w.wire[0]
	w.wire = w.wire[1:]
	rec.Received = w.now.UnixNano()
	w.write(func(g *journal.Group) error {
		offset, err := w.feed.Add(g, &rec.Record, false)
		if err != nil {
			w.t.Fatal(err)
		}
		if rec.state != nil {
			w.states[offset] = rec.state
		}
		return nil
	})
}

// publish sends what is in the queue, in batches, and receives it.
func (w *world) publish() {
	for len(w.queue)+len(w.taken) > 0 {
		w.take()
		w.send(false)
	}
	w.count()
	w.arrive()
}

func (w *world) arrive() {
	for len(w.wire) > 0 {
		w.receive()
	}
}

func (w *world) connect() {
	if !w.up {
		w.up = true
		w.wire = append(w.wire, sent{Record: capture.Record{Kind: capture.Connected}})
	}
}

func (w *world) disconnect(at int) {
	if w.up {
		w.up = false
		w.wire = slices.Insert(w.wire, min(at, len(w.wire)), sent{Record: capture.Record{Kind: capture.Disconnected}})
	}
}

// restart ends the publisher's process as a kill does.
func (w *world) restart() {
	w.disconnect(0)
	clear(w.truth)
	clear(w.announced)
	w.queue, w.taken, w.dropped = nil, nil, nil
	w.seq, w.id = 0, 0
	w.sent, w.counted = mooncake.Status{Enabled: true}, mooncake.Status{Enabled: true}
	w.process++
}

// mark makes a loss: a message that does not arrive, and one behind it that shows it.
func (w *world) mark() {
	w.do(stored("lost", cpu), removed("lost", cpu))
	w.take()
	w.send(true)
	for range 2 { // the first stands in the shadow
		w.do(stored("shows", disk))
		w.publish()
	}
}

// traffic sends short batches until any reading may end.
func (w *world) traffic() {
	for range 4 {
		w.do(mooncaketest.Change{Type: event.Stored, Tenant: "other", Key: "beat", Medium: cpu})
		w.publish()
	}
}

// live connects and lets the publisher be known.
func (w *world) live() {
	w.connect()
	w.arrive()
	w.traffic()
}
