package query

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/query/internal/oracle"
)

// FuzzPath holds the whole path from frames to answers against the oracle, on streams that no publisher sends: raw frames, numbers that
// jump anywhere, clocks that run anywhere, spoilt bytes, connections that come and go. Nothing may fail or panic, and no answer may
// differ from the oracle's.
//
// The input is a script (see hostile), so that a changed byte is a changed stream, not a refused one.
func FuzzPath(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(randomScript(seed))
	}
	f.Fuzz(func(t *testing.T, script []byte) { holdAgainstOracle(t, script) })
}

// TestPathHostile does the same with random scripts, for every run of the tests.
func TestPathHostile(t *testing.T) {
	for n := range *modelStreams {
		seed := *modelSeed + uint64(n)
		holdAgainstOracle(t, randomScript(seed))
		if t.Failed() {
			t.Fatalf("script of seed %d", seed)
		}
	}
}

func randomScript(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 23))
	b := make([]byte, 40+rng.IntN(400))
	for i := range b {
		b[i] = byte(rng.Uint32())
		if rng.IntN(3) == 0 {
			b[i] &= 3 // small steps are what a stream is made of
		}
	}
	return b
}

func holdAgainstOracle(t *testing.T, script []byte) {
	h := hostile{script: script, clock: 1_795_000_000_000}
	records := h.records()
	if len(records) == 0 {
		return
	}
	defer func() {
		if t.Failed() {
			t.Logf("script %q", script)
			for i, rec := range records[:min(len(records), 12)] {
				var b event.Batch
				b.Scan(rec.Frames)
				t.Logf("%d: %s at %d ms, seq %v %d, time %v %d, %v, %d events %.80q", i+1, rec.Kind, rec.Received/1e6, b.HasSeq, b.Seq, b.HasTime, b.Time, b.Damage, len(b.Events), rec.Frames)
			}
		}
	}()
	sum := fnv.New64a()
	sum.Write(script)
	seed := sum.Sum64()
	r := &recorded{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), oracle: oracle.New(), fs: vfs.NewMem(),
		stream: &oracle.Stream{Seed: seed, Records: records},
	}
	r.record()
	defer r.close()
	r.stream.Objects = append(r.oracle.Objects(), oracle.Object{Backend: "b", Tenant: event.DefaultTenant, Key: "never"})
	for i := range r.stream.Records {
		offset := uint64(i + 1)
		r.ask(When{Kind: AtOffset, Offset: offset}, "offset", func(o oracle.Object, m string) oracle.State { return r.oracle.AtOffset(offset, o, m) })
	}
	times := r.oracle.Times()
	r.rng.Shuffle(len(times), func(i, j int) { times[i], times[j] = times[j], times[i] })
	r.mayWithhold = true // behind a first batch that has no time of its own: see oracle.Options.UndatedAnywhere
	for _, ms := range times[:min(len(times), 20)] {
		r.ask(When{Kind: AtTime, Ms: ms}, "time", func(o oracle.Object, m string) oracle.State { return r.oracle.AtTime(ms, o, m) })
	}
	r.mayWithhold = false
	r.ask(When{}, "default", r.oracle.Latest)
	r.gaps()
	var met counts
	for _, o := range r.oracle.Objects() {
		r.history(o, &met)
	}
	for range 3 {
		r.diffPair()
		w, _ := r.randomMoment()
		r.why(w)
		r.list(ObjectsQuestion{At: w, State: AnyState})
	}
	r.theRest()
}

// theRest asks the questions that the model of hostile streams says nothing about: they must give lines.
func (r *recorded) theRest() {
	r.t.Helper()
	ctx := r.t.Context()
	var line []byte
	write := func(v any) (err error) {
		line, err = AppendJSON(line[:0], v)
		return err
	}
	r.must(r.e.Log(ctx, LogOptions{}, nil, func(l *LogLine) error { return write(l) }))
	r.must(r.e.Activity(ctx, ActivityOptions{}, nil, func(b *ActivityBucket) error { return write(b) }))
	r.lifetimes(&LifetimesQuery{By: "none"}, 0, uint64(len(r.stream.Records)))
	r.must(r.e.ExportRecords(ctx, "model", Span{}, nil, func(l *ExportLine) error { return write(l) }))
	st, err := r.e.Stats(ctx)
	r.must(err)
	r.must(write(st))
	var out []capture.Record
	r.must(r.e.ExportCapture(ctx, "model", Span{}, nil, func(rec *capture.Record) error {
		out = append(out, capture.Record{Kind: rec.Kind, Received: rec.Received, Frames: capture.CopyFrames(nil, rec.Frames)})
		return nil
	}))
	for i := range out {
		if i < len(r.stream.Records) && len(out) == len(r.stream.Records) && !sameRecord(&out[i], &r.stream.Records[i]) {
			r.t.Fatalf("seed %d: record %d is exported as %+v, it was %+v", r.stream.Seed, i+1, out[i], r.stream.Records[i])
		}
	}
}

// hostile reads a script as records.
type hostile struct {
	script  []byte
	clock   int64 // ms
	sent    int64 // publisher time, ms, less the clock
	seq, id uint64
	last    [][]byte
}

// maxHostile bounds the records of one script, so that an input takes milliseconds.
const maxHostile = 60

func (h *hostile) byte() byte {
	if len(h.script) == 0 {
		return 0
	}
	b := h.script[0]
	h.script = h.script[1:]
	return b
}

func (h *hostile) bytes(n int) []byte {
	n = min(n, len(h.script))
	b := bytes.Clone(h.script[:n])
	h.script = h.script[n:]
	return b
}

func (h *hostile) records() []capture.Record {
	var out []capture.Record
	for len(h.script) > 0 && len(out) < maxHostile {
		h.clock += int64(h.byte() & 15)
		rec := capture.Record{Kind: capture.Message, Received: h.clock * 1e6}
		switch op := h.byte() % 16; op {
		case 10:
			rec.Kind = capture.Connected
		case 11:
			rec.Kind = capture.Disconnected
		case 12:
			if rec.Frames = h.last; h.last == nil {
				continue
			}
		case 13: // frames of any number and length
			rec.Frames = [][]byte{}
			for range h.byte() % 6 {
				rec.Frames = append(rec.Frames, h.bytes(int(h.byte()%16)))
			}
		case 14: // a payload of any bytes
			h.seq++
			rec.Frames = [][]byte{{}, binary.BigEndian.AppendUint64(nil, h.seq), h.bytes(int(h.byte()))}
		case 15:
			h.jump()
			continue
		default:
			rec.Frames = h.batch()
		}
		if rec.Kind == capture.Message {
			h.last = rec.Frames
		}
		out = append(out, rec)
	}
	return out
}

// jump moves a number to where it may overflow, or a clock to where it cannot be.
func (h *hostile) jump() {
	values := []uint64{0, 1, math.MaxInt64 - 1, math.MaxInt64, math.MaxUint64 - 2, math.MaxUint64}
	v := values[int(h.byte())%len(values)]
	switch h.byte() % 5 {
	case 0:
		h.seq = v
	case 1:
		h.id = v
	case 2:
		h.seq, h.id = 0, 0 // another process
	case 3:
		h.sent = int64(v) - h.clock
	case 4:
		h.sent = int64(int8(h.byte())) * 600_000
	}
}

// batch is a message as a publisher writes it, with numbers that may jump; a few are spoilt.
func (h *hostile) batch() [][]byte {
	how := h.byte()
	h.seq += step(how & 7)
	h.id += step(how >> 3 & 7)
	n := int(h.byte() % 8)
	if how>>6 == 3 && h.byte()%4 == 0 {
		n += 62 // may be cut (R8)
	}
	events := make([]event.Fields, n)
	for i := range events {
		events[i] = h.event()
		events[i].ID = h.id
		h.id++
	}
	h.id--
	frame := event.SeqFrame(h.seq)
	payload := event.NewEncoder(event.EncodeOptions{ObjectKey: true}).AppendPayload(nil, h.clock+h.sent, events, 0)
	if spoil := h.byte(); spoil >= 0xf0 {
		at := int(binary.LittleEndian.Uint16([]byte{h.byte(), h.byte()})) % len(payload)
		payload[at] ^= h.byte()
	}
	return [][]byte{{}, frame[:], payload}
}

// step is mostly the one that follows.
func step(b byte) uint64 {
	switch b {
	case 5:
		return 0
	case 6:
		return 3
	case 7:
		return math.MaxUint64 // back by one
	}
	return 1
}

func (h *hostile) event() event.Fields {
	b := h.byte()
	e := event.Fields{
		Type:      []event.Type{event.Stored, event.Stored, event.Removed, event.Cleared}[b&3],
		Key:       []string{"k", "k\x00", "\xff\x01", "kk"}[b>>2&3],
		Medium:    []string{"cpu", "cpu", "disk", "m"}[b>>4&3],
		Tenant:    []string{event.DefaultTenant, event.DefaultTenant, "t\x00", ""}[b>>6],
		Backend:   "b",
		Timestamp: h.clock,
	}
	return e
}
