package oracle

import (
	"math/rand/v2"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// line is the network and the recorder's ear. It counts messages, not time: a broken connection first still delivers what
// had arrived before (the recorder has heard of the break already: the window of R5), then loses, then delivers over
// the new connection, and only then does the recorder hear that it stands.
type line struct {
	rng    *rand.Rand
	stream *Stream
	now    func() int64 // receive time, ns
	rates  rates

	fading, losing, rising int    // messages left of each phase of a break
	broken                 bool   // a break is under way
	dies                   func() // ends the process when the fading is over; nil if it lives on
	dropping               int    // messages to lose without a break
	careful                bool   // nothing may go wrong

	// anchored: the last message that was sent was heard and read, and so was each before it back to one with a time of its
	// own.
	anchored bool

	last    [][]byte // frames of the last message heard
	truth   Truth    // at the last message heard
	lastSeq uint64   // of the last message heard whose seq can be read
	lastID  uint64   // the event_id that the next message is held against
	idKnown bool     // lastID is one
	reborn  bool     // another process, and nothing of it heard yet, and no connection record since
}

// rates are probabilities per message.
type rates struct {
	duplicate, damage, unreadable, garbage float64
}

func (l *line) chance(p float64) bool { return l.rng.Float64() < p }

func (l *line) record(kind capture.Kind, frames [][]byte) {
	l.stream.Records = append(l.stream.Records, capture.Record{Kind: kind, Received: l.now(), Frames: frames})
	l.stream.Truth = append(l.stream.Truth, l.truth)
	if kind == capture.Connected {
		l.reborn = false
	}
}

func (l *line) up() bool { return !l.broken }

// breakOff lets the connection break.
func (l *line) breakOff(fading, losing, rising int, dies func()) {
	l.record(capture.Disconnected, nil)
	l.anchored = false
	l.broken, l.fading, l.losing, l.rising, l.dies = true, fading, losing, rising, dies
	l.settle()
}

// settle moves a break on where a phase has no messages left.
func (l *line) settle() {
	if !l.broken || l.fading > 0 {
		return
	}
	if dies := l.dies; dies != nil {
		l.dies = nil
		dies()
		if l.lastSeq < 10 && l.chance(0.5) {
			l.losing = int(l.lastSeq) // the new process is first heard where the old one would go on
		}
	}
	if l.losing > 0 || l.rising > 0 {
		return
	}
	l.broken = false
	l.record(capture.Connected, nil)
	if l.last != nil && l.chance(l.rates.duplicate) {
		l.record(capture.Message, l.last)
	}
}

// carry takes one message from the publisher to the recorder, or does not.
func (l *line) carry(b *outgoing, payload []byte) {
	switch {
	case l.fading > 0:
		l.fading--
		l.hear(b, payload)
	case l.losing > 0:
		l.losing--
		l.anchored = false
	case l.rising > 0:
		l.rising--
		l.hear(b, payload)
	case l.dropping > 0 && !l.careful:
		l.dropping--
		l.anchored = false
	default:
		l.hear(b, payload)
	}
	l.settle()
}

// hear records a message, as it is or spoilt, once or twice.
func (l *line) hear(b *outgoing, payload []byte) {
	if !l.careful && l.chance(l.rates.garbage) {
		seq := event.SeqFrame(l.rng.Uint64())
		l.message(damageUnreadable(l.rng, [][]byte{nil, seq[:], []byte("garbage")}))
	}
	seq := event.SeqFrame(b.seq)
	frames := [][]byte{{}, seq[:], payload}
	l.anchored = l.anchored || b.dated
	switch {
	case l.careful:
	case l.chance(l.rates.damage):
		frames[2], l.anchored = damageReadable(l.rng, b, payload), false
	case l.chance(l.rates.unreadable):
		frames, l.anchored = damageUnreadable(l.rng, frames), false
	}
	l.number(frames)
	l.truth = b.truth
	l.message(frames)
}

func (l *line) message(frames [][]byte) {
	l.record(capture.Message, frames)
	l.last = frames
	if l.chance(l.rates.duplicate) {
		l.record(capture.Message, frames)
	}
}

// number keeps the numbers of a message that is about to be heard. Where they would hide a restart, the connection records
// that a real recorder always sees are put before it.
func (l *line) number(frames [][]byte) {
	var b event.Batch
	b.Scan(frames)
	id, hasID := l.lastID, false
	if len(b.Events) > 0 {
		id, hasID = b.Events[0].ID, b.Events[0].HasID
	}
	if l.reborn && !l.broken {
		ids := l.idKnown && hasID
		shown := b.Seq <= l.lastSeq || ids && id <= l.lastID || ids && b.Seq == l.lastSeq+1 && id != l.lastID+1
		if !b.HasSeq || !shown {
			l.record(capture.Disconnected, nil)
			l.record(capture.Connected, nil)
		}
	}
	l.reborn = false
	if !b.HasSeq {
		return
	}
	l.lastSeq = b.Seq
	switch n := len(b.Events); {
	case b.Damage != event.None:
		l.idKnown = false
	case n > 0:
		l.lastID, l.idKnown = b.Events[n-1].ID, b.Events[n-1].HasID
	}
}
