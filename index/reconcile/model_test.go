package reconcile

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// life lets a world live by chance: changes, the publisher's queue with its drops and delays, messages lost on the wire, connections, restarts.
type life struct {
	*world
	rng     *rand.Rand
	names   []name
	store   *mooncaketest.Store // nil: changes are made up here, of few keys
	stored  int                 // the process that store is of
	seen    map[name]bool
	changes float64       // how likely a step is a change
	trouble float64       // how likely a step is a loss, a drop, a restart, a broken connection
	resting time.Duration // how long changes rest in the queue at most
	held    time.Time     // until then nothing is taken
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 9))}
	l.changes, l.trouble = 0.3+0.4*l.rng.Float64(), []float64{0, 0, 0.0005, 0.005}[l.rng.IntN(4)]
	l.limit = []int{20, 200, 1 << 16}[l.rng.IntN(3)]
	l.resting = []time.Duration{0, 200 * time.Millisecond, 700 * time.Millisecond}[l.rng.IntN(3)]
	keys := []string{"a", "b", "c", "d", "e", "f", "a,b", "c\nd", "c\n", "\xff", "é", "%41", "\x00"}
	for _, tenant := range []string{event.DefaultTenant, "other"} {
		for _, k := range keys {
			l.names = append(l.names, name{tenant, k})
		}
	}
	l.hook = func(string) {
		for range l.rng.IntN(4) {
			l.step()
		}
	}
	l.pass = func(d time.Duration) {
		d = min(d, time.Duration(1+l.rng.IntN(600))*time.Millisecond)
		if busy := l.rng.IntN(3) > 0; busy {
			for range l.rng.IntN(12) {
				l.step()
			}
		}
		if d > 300*time.Millisecond {
			// So much later nothing is on the wire any more, nor uncounted; the queue rests for longer only where resting says so.
			l.send(false)
			l.count()
			l.arrive()
		}
		l.now = l.now.Add(d)
		if l.now.After(l.held) {
			for len(l.queue) > 0 {
				l.take()
				l.send(false)
			}
			l.count()
		}
	}
	return l
}

func (l *life) step() {
	switch p := l.rng.Float64(); {
	case p < l.trouble:
		l.upset()
	case p < l.trouble+l.changes:
		l.change()
	default:
		switch l.rng.IntN(5) {
		case 0:
			if l.now.After(l.held) {
				l.take()
			}
		case 1:
			l.send(false)
		case 2:
			l.count()
		case 3:
			l.receive()
		default:
			l.connect()
		}
	}
}

func (l *life) upset() {
	switch l.rng.IntN(5) {
	case 0:
		l.restart()
	case 1:
		l.disconnect(l.rng.IntN(3))
	case 2: // lost on the wire
		l.take()
		l.send(true)
	case 3: // more than the queue holds
		for range l.limit % 1000 {
			l.change()
		}
	default:
		for range 70 {
			l.change()
		}
	}
}

// change makes one atomic change. A key with a newline is listed as its pieces.
func (l *life) change() {
	if l.resting > 0 && len(l.queue) == 0 && l.rng.IntN(2) == 0 {
		l.held = l.now.Add(l.resting)
	}
	if l.store != nil {
		if l.stored != l.process { // a restarted master is empty
			l.stored = l.process
			o := mooncaketest.StoreOptions{Seed: l.rng.Uint64(), Tenants: 2, Objects: 30, ClearEvery: 300, RacyClears: true, OddKeys: 6}
			*l.store = *mooncaketest.NewStore(o)
		}
		changes := l.store.Step(nil)
		for _, c := range changes {
			if n := (name{c.Tenant, c.Key}); c.Key != "" && !l.seen[n] {
				l.seen[n] = true
				l.names = append(l.names, n)
			}
		}
		l.do(changes...)
		return
	}
	n := l.names[l.rng.IntN(len(l.names))]
	m := []string{cpu, disk}[l.rng.IntN(2)]
	c := func(t event.Type, m string) mooncaketest.Change {
		return mooncaketest.Change{Type: t, Tenant: n.tenant, Key: n.key, Medium: m}
	}
	switch p := l.rng.IntN(100); {
	case p < 45:
		l.do(c(event.Stored, m))
	case p < 75:
		l.do(c(event.Removed, m))
	case p < 85:
		l.do(c(event.Removed, cpu), c(event.Removed, disk), c(event.Stored, m))
	case p < 90:
		if _, there := l.truth[n]; !there {
			l.truth[n] = 0 // a put begins
		}
	case p < 92 && l.rng.IntN(20) == 0: // a remove-all, which what is stored meanwhile survives
		var all []mooncaketest.Change
		for _, o := range l.names {
			if w := l.truth[o]; o.tenant == n.tenant && w != 0 {
				for _, e := range each {
					if w&e.present != 0 {
						all = append(all, mooncaketest.Change{Type: event.Removed, Tenant: o.tenant, Key: o.key, Medium: string(e.name)})
					}
				}
			}
		}
		l.do(all...)
		if l.rng.IntN(2) == 0 {
			l.do(c(event.Stored, m))
		}
		l.do(mooncaketest.Change{Type: event.Cleared, Tenant: n.tenant})
	}
}

// rest lets everything be told, and shows every loss.
func (l *life) rest() {
	l.held = time.Time{}
	l.connect()
	l.publish()
	l.settleDown()
	if l.store == nil || l.stored != l.process {
		return
	}
	for o := range l.store.Objects() {
		if w := l.truth[name{o.Tenant, o.Key}]; w != bit(o.CPU, onCPU)|bit(o.Disk, onDisk) {
			l.t.Fatalf("the store has %+v, the world %b", o, w)
		}
	}
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("KVJOURNAL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("KVJOURNAL_SEED: %v", err)
		}
	}
	t.Logf("KVJOURNAL_SEED=%d", seed)
	return seed
}

// Whatever happens between and inside the steps of readings, nothing that is confirmed is wrong at a quiet moment; and after a reading
// in peace all that can be asked is confirmed.
func TestModel(t *testing.T) {
	seed := seedOf(t)
	lives := 24
	if s := os.Getenv("KVJOURNAL_LIVES"); s != "" {
		lives, _ = strconv.Atoi(s)
	}
	held, discarded, corrected, sure := 0, map[string]int{}, 0, 0
	for i := range lives {
		n := seed + uint64(i)
		l := newLife(t, n)
		if i%4 == 3 {
			l.store, l.seen, l.names = &mooncaketest.Store{}, map[name]bool{}, nil
		}
		r := l.runner()
		l.live()
		for round := range 12 {
			for range l.rng.IntN(60) {
				l.step()
			}
			if l.rng.IntN(2) == 0 {
				for range 1 + l.rng.IntN(3) { // lost, whatever the life is like
					l.change()
					l.take()
					l.send(true)
				}
				l.rest()
			}
			q := Request{Why: reading.AfterMark}
			if q.Audit = l.rng.IntN(3) == 0; q.Audit {
				q.Why = reading.Audit
			}
			report, err := r.once(context.Background(), q)
			switch {
			case err == nil:
				held++
				corrected += report.Corrections
				if report.Contradictions > 0 {
					t.Fatalf("seed %d, round %d: %d contradictions, and nothing was silent", n, round, report.Contradictions)
				}
			case expected(err):
				discarded[sort(err)]++
			default:
				t.Fatalf("seed %d, round %d: %v", n, round, err)
			}
			l.now = l.now.Add(time.Duration(l.rng.IntN(8000)) * time.Millisecond)
			hook := l.hook
			l.hook = func(string) {}
			l.rest()
			sure += l.checkSeed(n, round)
			if l.rng.IntN(4) == 0 {
				pass := l.pass
				finish(l.world, l.rng.IntN(2) == 0)
				l.read(r, Request{})
				l.pass = pass
				l.settleDown()
				l.checkSeed(n, round)
				l.allSure(n, round)
			}
			l.hook = hook
		}
	}
	t.Logf("%d readings held, discarded: %v, %d corrections, %d confirmed answers compared", held, discarded, corrected, sure)
	if lives >= 24 && (held < lives || corrected < lives || len(discarded) == 0) {
		t.Error("too little happened")
	}
}

func (l *life) checkSeed(seed uint64, round int) int {
	return l.check("seed "+strconv.FormatUint(seed, 10)+", round "+strconv.Itoa(round), l.names)
}

// allSure fails where something is in doubt that a reading in peace resolves.
func (l *life) allSure(seed uint64, round int) {
	l.t.Helper()
	for n, media := range l.answers(l.names) {
		if n.tenant != event.DefaultTenant || !listable([]byte(n.key)) {
			continue
		}
		if n.key == "c" || n.key == "d" || mooncake.WhyUnaskable([]byte(n.key)) != "" {
			continue // a piece of a key with a newline, or not to be asked
		}
		for _, m := range media[:2] {
			if !m.Sure {
				l.t.Fatalf("seed %d, round %d: %q on %s is in doubt after a reading in peace", seed, round, n.key, m.Name)
			}
		}
	}
}

func sort(err error) string {
	for _, known := range []error{ErrBroken, ErrNoEnd, ErrDisconnected, ErrBackend} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the master"
}
