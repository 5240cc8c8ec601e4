package reconcile

import (
	"bytes"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// The media that the master's admin API speaks of.
const (
	cpu  = "cpu"
	disk = "disk"
)

// Medium is what could be claimed of one medium of an object at h.
type Medium struct {
	Name    string
	Present bool
	// Sure: it is confirmed. What is not sure is in doubt.
	Sure bool
}

// word is what is known of an object beside its key, in a byte: the master's word, or what the index knows at h.
type word byte

const (
	onCPU    word = 1 << iota // present on cpu
	onDisk                    // present on disk
	sureCPU                   // what is known of cpu is confirmed
	sureDisk                  // what is known of disk is confirmed
	others                    // media other than cpu and disk are in doubt: no listing and no query speaks of them
	known                     // anything was known of the object
	ask                       // the master is to be asked for its media

	gone word = 0 // the master's word on what it does not have
)

// each are the two media, each with the bits that tell of it.
var each = [...]struct {
	name          []byte
	present, sure word
}{{[]byte(cpu), onCPU, sureCPU}, {[]byte(disk), onDisk, sureDisk}}

// knows puts what could be claimed of an object at h into a word; nil: nothing, its absence included.
func knows(media []Medium) word {
	if len(media) == 0 {
		return 0
	}
	w := known
	for i := range media {
		m := &media[i]
		switch m.Name {
		case cpu:
			w |= bit(m.Present, onCPU) | bit(m.Sure, sureCPU)
		case disk:
			w |= bit(m.Present, onDisk) | bit(m.Sure, sureDisk)
		default:
			w |= bit(!m.Sure, others)
		}
	}
	return w
}

func bit(set bool, b word) word {
	if set {
		return b
	}
	return 0
}

// doubtful: something about the object is in doubt.
func (w word) doubtful() bool { return w&(sureCPU|sureDisk) != sureCPU|sureDisk || w&others != 0 }

// absent: the object is confirmed to be on neither medium.
func (w word) absent() bool { return w&(sureCPU|sureDisk|onCPU|onDisk) == sureCPU|sureDisk }

// toAsk reports whether the master must be asked for the media of a listed key: where something is in doubt, where the object should not
// be there at all, and in an audit always.
func (w word) toAsk(audit bool) bool { return audit || w.doubtful() || w.absent() }

// said is what an answer means for a listed key. ok is false where it says nothing: the object is left as it is.
func said(a mooncake.Answer) (w word, ok bool) {
	switch a.State {
	case mooncake.Readable:
		w = bit(a.CPU, onCPU) | bit(a.Disk, onDisk)
		return w, w != gone // "ok" with nothing set
	case mooncake.NotReady:
		return gone, true
	}
	// NotFound of a listed key: removed in between, or no key at all but a piece of one with a newline.
	return gone, false
}

// listable reports whether a listing of lines can show the key.
func listable(key []byte) bool { return bytes.IndexByte(key, '\n') < 0 }

// effect is what the master's word on one object comes to.
type effect struct {
	agreed         bool // all that was in doubt is as it was known
	contradicts    bool // what is confirmed is not so, and one reading alone is not enough to say it (R9)
	contradictions int  // media of which two readings say that what is confirmed is not so
	corrections    int
	excepted       bool // the reading's row for the scope must not speak of the object
}

// weigh compares what is known of an object at h with the master's word, and calls emit with each entry that is needed beside
// the scope's row. rest are its media other than cpu and disk; before is the word of an earlier reading that contradicted the stream,
// if it is still a candidate. Entries: corrections where the two differ; and, where the row must not speak of the object, one for each
// medium that the master does speak of, and the exception. With except the row speaks of it in no case. emit may keep neither.
func weigh(k, w word, rest []Medium, before *word, except bool, emit func(reading.What, []byte)) (e effect) {
	for _, m := range each {
		differs := (k^w)&m.present != 0
		switch {
		case k&m.sure == 0 || !differs:
		case before != nil && (*before^w)&m.present == 0:
			e.contradictions++
		default:
			e.contradicts = true
		}
	}
	for i := range rest {
		m := &rest[i]
		switch {
		case w != gone, !m.Sure, !m.Present:
		case before != nil && *before&(onCPU|onDisk) == gone:
			e.contradictions++
		default:
			e.contradicts = true
		}
	}
	e.excepted = except || e.contradicts || k&others != 0 && (w != gone || rest == nil)
	e.agreed = !e.excepted
	for _, m := range each {
		differs := (k^w)&m.present != 0
		doubt := k&m.sure == 0
		real := !doubt && differs && before != nil && (*before^w)&m.present == 0
		if doubt && (differs || e.excepted) || real {
			e.add(what(w&m.present != 0), m.name, emit)
		}
		e.agreed = e.agreed && !differs
	}
	if w == gone {
		for i := range rest {
			m := &rest[i]
			if !m.Sure || m.Present && before != nil && *before&(onCPU|onDisk) == gone {
				e.add(reading.Absent, []byte(m.Name), emit)
			}
			e.agreed = e.agreed && !m.Present
		}
	}
	if e.excepted {
		emit(reading.Unsaid, nil)
	}
	return e
}

func (e *effect) add(what reading.What, medium []byte, emit func(reading.What, []byte)) {
	e.corrections++
	emit(what, medium)
}

func what(present bool) reading.What {
	if present {
		return reading.Present
	}
	return reading.Absent
}
