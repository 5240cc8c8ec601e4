package oracle

import (
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/journal/event"
)

// Options of Generate. The zero value is what tests of the rules want.
type Options struct {
	// Steps is how many things happen; records are of the same order. 0: drawn, 30 to 400.
	Steps int
	// LoseSurvivors lets events be lost of objects that are stored while a remove-all of their scope runs. R7 as
	// written then confirms absences that are not so: streams of this kind are no test of an implementation.
	LoseSurvivors bool
	// UndatedAnywhere lets a batch with a time more than 1 h ahead be the first of all, or stand behind a message that was
	// lost or damaged. R8 as written then dates it by the wrong batch: see LoseSurvivors.
	UndatedAnywhere bool
}

// Generate makes the stream of a seed. The same seed and options give the same stream.
func Generate(seed uint64, o Options) *Stream {
	h := newHost(seed, o)
	for range h.steps {
		h.step()
	}
	h.end()
	return h.stream
}

// host is the machine that one publisher process after another runs on, with all that goes wrong around it.
type host struct {
	rng     *rand.Rand
	options Options
	stream  *Stream
	line    *line
	pub     *publisher
	steps   int

	clock int64 // true time, ms
	skew  int64 // of the publisher's clock
	ahead float64
	odd   float64 // probability that a batch has an odd form

	encoder *event.Encoder
	limits  []int   // of the queue, one is drawn for each process
	keyless float64 // probability that a process sends no keys
	weights weights
	terse   bool // each change is sent by itself
	scopes  []scope
	keys    []string
}

// weights say how often each thing happens, relative to another.
type weights struct {
	change, burst, send, take, removeAll, empty, drop, breakOff, restart, clock int
}

func newHost(seed uint64, o Options) *host {
	rng := rand.New(rand.NewPCG(seed, 0x6b766a6f75726e61))
	h := &host{
		rng: rng, options: o, steps: o.Steps,
		stream:  &Stream{Seed: seed, Media: []string{"cpu", "disk", "nvm\u00e9"}},
		clock:   1_795_000_000_000,
		weights: weights{change: 40, send: 60, take: 4, removeAll: 2},
	}
	if h.steps == 0 {
		h.steps = 30 + rng.IntN(371)
	}
	h.drawTroubles()
	h.drawWorld()
	h.startProcess()
	return h
}

// drawTroubles decides what can go wrong in this stream: a few things each, so that much of it stays provable.
func (h *host) drawTroubles() {
	some := func(n int) int { // often nothing
		if h.rng.IntN(3) > 0 {
			return 0
		}
		return 1 + h.rng.IntN(n)
	}
	rate := func(most float64) float64 {
		if h.rng.IntN(4) > 0 {
			return 0
		}
		return most * h.rng.Float64()
	}
	w := &h.weights
	w.burst, w.empty, w.drop, w.breakOff, w.restart, w.clock = some(2), some(2), some(4), some(4), some(2), some(4)
	w.removeAll += some(8)
	w.take += some(20)
	h.limits = []int{0}
	if h.rng.IntN(2) == 0 {
		h.limits = []int{0, 2 + h.rng.IntN(10), 64 + h.rng.IntN(100)}
	}
	h.ahead, h.odd, h.keyless = rate(0.1), rate(1), rate(0.6)
	h.terse = h.rng.IntN(5) == 0
	h.line = &line{
		rng: h.rng, stream: h.stream,
		now:   func() int64 { return h.clock*1_000_000 + h.rng.Int64N(3_000_000) },
		rates: rates{duplicate: rate(0.3), damage: rate(0.1), unreadable: rate(0.1), garbage: rate(0.05)},
	}
	h.encoder = event.NewEncoder(event.EncodeOptions{LegacyCompat: h.rng.IntN(3) > 0, ObjectKey: true})
}

func (h *host) drawWorld() {
	backends := []string{"b0", "", "b\xff1"}[:1+h.rng.IntN(3)]
	tenants := []string{event.DefaultTenant, "t,1", "\x00\xfe"}[:1+h.rng.IntN(3)]
	h.keys = []string{"k", "k,\n", "k\x00", "\xff\xfe", "kk", "\u00fcber"}[:2+h.rng.IntN(5)]
	for _, b := range backends {
		for _, t := range tenants {
			h.scopes = append(h.scopes, scope{b, t})
			for _, k := range append([]string{"never"}, h.keys...) {
				h.stream.Objects = append(h.stream.Objects, Object{b, t, k})
			}
		}
	}
	h.stream.Objects = append(h.stream.Objects, Object{"elsewhere", "nobody", "never"})
}

// startProcess begins a process life with an empty store, at seq 1.
func (h *host) startProcess() {
	h.pub = newPublisher(h.limits[h.rng.IntN(len(h.limits))], h.rng.Float64() < h.keyless)
	h.line.reborn, h.line.anchored = len(h.stream.Records) > 0, false
}

// step lets one thing happen.
func (h *host) step() {
	h.clock += h.rng.Int64N(40)
	w := h.weights
	total := w.change + w.burst + w.send + w.take + w.removeAll + w.empty + w.drop + w.breakOff + w.restart + w.clock
	at := h.rng.IntN(total)
	hit := func(weight int) bool {
		at -= weight
		return at < 0
	}
	switch {
	case hit(w.change):
		if h.pub.store.keyless && h.rng.IntN(3) == 0 {
			h.removeAll() // else it would have nothing to say
		}
		for range 1 + h.rng.IntN(4) {
			h.mutate()
			if h.terse {
				h.send()
			}
		}
	case hit(w.burst):
		for range 40 + h.rng.IntN(80) {
			h.mutate()
		}
	case hit(w.send):
		h.send()
	case hit(w.take):
		h.pub.take()
	case hit(w.removeAll):
		h.removeAll()
	case hit(w.empty):
		if h.pub.idle() { // an empty batch says that the queue was empty, as a short one does
			h.transmit()
		}
	case hit(w.drop):
		h.line.dropping += 1 + h.rng.IntN(3)
	case hit(w.breakOff):
		h.breakOff()
	case hit(w.restart):
		h.startProcess()
		if h.line.lastSeq < 10 && h.rng.IntN(2) == 0 {
			h.line.dropping = int(h.line.lastSeq) + h.rng.IntN(2) // the new process is first heard about where the old one would go on
		}
	case hit(w.clock):
		h.skew += h.rng.Int64N(400) - 250
	}
}

func (h *host) object() Object {
	s := h.scopes[h.rng.IntN(len(h.scopes))]
	return Object{s.backend, s.tenant, h.keys[h.rng.IntN(len(h.keys))]}
}

func (h *host) medium() string {
	return h.stream.Media[min(h.rng.IntN(7)/3, len(h.stream.Media)-1)] // the odd one seldom
}

// mutate changes one object.
func (h *host) mutate() {
	obj, s := h.object(), h.pub.store
	m, other := h.medium(), h.medium()
	switch h.rng.IntN(6) {
	case 0, 1:
		s.put(placement{obj, m})
	case 2:
		s.upsert(placement{obj, m})
	case 3:
		s.removeObject(obj)
	case 4:
		s.change(effect{placement{obj, m}, false}) // an eviction, perhaps of what is not there
	case 5:
		if m != other && s.held[placement{obj, m}] {
			s.move(obj, m, other)
		}
	}
}

// send takes a batch, if the hand is empty, and sends it.
func (h *host) send() {
	h.pub.take()
	if len(h.pub.hand) > 0 {
		h.transmit()
	}
}

func (h *host) transmit() {
	h.clock += h.rng.Int64N(3)
	b := h.pub.send(h.clock + h.skew)
	if h.rng.Float64() < h.ahead && (h.options.UndatedAnywhere || h.line.anchored) {
		b.time, b.dated = b.time+2*hourMS, false
	}
	h.announce(&b)
	var payload []byte
	if h.rng.Float64() < h.odd {
		payload = oddPayload(h.rng, &b)
	} else {
		payload = h.encoder.AppendPayload(nil, b.time, b.events, 0)
	}
	h.line.carry(&b, payload)
}

func (h *host) announce(b *outgoing) {
	a := announcement{dated: b.dated, time: b.time, clock: h.clock + h.skew, truth: b.truth}
	if n := len(h.stream.announced); !b.dated && n > 0 { // R8: it takes its predecessor's
		a.dated, a.time = h.stream.announced[n-1].dated, h.stream.announced[n-1].time
	}
	h.stream.announced = append(h.stream.announced, a)
}

func (h *host) flush() {
	for !h.pub.idle() {
		h.send()
	}
}

// removeAll empties a scope. Where objects are stored meanwhile, nothing is lost until the cleared is out, unless the
// options say otherwise.
func (h *host) removeAll() {
	s := h.scopes[h.rng.IntN(len(h.scopes))]
	skip := func(Object) bool { return false }
	if h.rng.IntN(5) == 0 {
		skip = func(Object) bool { return h.rng.IntN(3) == 0 }
	}
	if h.rng.IntN(2) == 0 {
		h.pub.store.removeAll(s, func() {}, skip)
		return
	}
	meanwhile := func() {
		if h.rng.IntN(3) == 0 {
			h.pub.store.put(placement{Object{s.backend, s.tenant, h.keys[h.rng.IntN(len(h.keys))]}, h.medium()})
		}
	}
	if h.options.LoseSurvivors {
		h.pub.store.removeAll(s, meanwhile, skip)
		return
	}
	h.flush()
	if !h.line.up() {
		return
	}
	limit := h.pub.limit
	h.pub.limit, h.line.careful = 0, true
	h.pub.store.removeAll(s, meanwhile, skip)
	h.flush()
	h.pub.limit, h.line.careful = limit, false
}

// breakOff breaks the connection, with or without a window, a loss, and the end of the process.
func (h *host) breakOff() {
	if !h.line.up() {
		return
	}
	few := func() int { return max(0, h.rng.IntN(6)-2) }
	var fading, rising int
	if h.rng.IntN(2) == 0 {
		fading, rising = few(), few()
	}
	var dies func()
	if h.rng.IntN(3) == 0 {
		dies = h.startProcess
	}
	h.line.breakOff(fading, few(), rising, dies)
}

func (h *host) end() {
	if h.rng.IntN(2) == 0 {
		h.flush()
	}
	if h.rng.IntN(3) == 0 {
		h.breakOff()
		h.send()
	}
}
