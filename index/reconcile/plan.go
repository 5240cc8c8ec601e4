package reconcile

import (
	"bytes"
	"fmt"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/reading"
)

// Object is an object that was known at h, with what could be claimed of it there.
type Object struct {
	Key []byte
	// Media begin with cpu and disk; every other medium on which the object was seen by h follows.
	Media []Medium
}

// plan joins the listing of a scope with the objects of the scope that were known at h: what is not listed is decided at once, what
// must be asked is noted in the listing. It reads and waits for nothing.
type plan struct {
	scope  reading.Scope
	list   *Listing // sorted; the notes become what is known at h, or, of a snapshot, hold the master's word until then
	parts  *parts   // what is said of objects that are not listed
	before cursor   // candidates of an earlier reading
	audit  bool
	lines  bool // the listing is one of lines: it cannot show a key with a newline
	whole  bool // the notes of the listing are the master's words: nothing is asked

	at    cursor
	last  []byte
	begun bool
	counts
	found *candidates
}

// counts are what a reading comes to, in objects.
type counts struct {
	Objects    int `json:"objects"`    // known at h
	Doubts     int `json:"doubts"`     // of them in doubt
	Unsaid     int `json:"unsaid"`     // of which the master said nothing
	Unaskable  int `json:"unaskable"`  // of them those of which it never will: the API has no way to name them
	Contradict int `json:"contradict"` // that contradict what is confirmed, and wait for another reading
	asked      int
	agreed     int
}

func (p *plan) begin() {
	p.at = cursor{l: p.list}
	if !p.whole {
		for i := range p.list.Len() {
			p.list.setNote(i, ask)
		}
	}
}

// object takes the next object that was known at h. The keys must ascend.
func (p *plan) object(o *Object) error {
	if p.begun && bytes.Compare(p.last, o.Key) >= 0 {
		return fmt.Errorf("the index gave the object %.80q behind %.80q: its order is not that of bytes", o.Key, p.last)
	}
	p.last, p.begun = append(p.last[:0], o.Key...), true
	p.Objects++
	k := knows(o.Media)
	if k.doubtful() {
		p.Doubts++
	}
	var rest []Medium
	if len(o.Media) > len(each) {
		rest = o.Media[len(each):]
	}
	i, listed := p.at.find(o.Key)
	switch {
	case listed && p.whole:
		w := p.list.note(i)
		p.list.setNote(i, w|known)
		if k.doubtful() || p.audit || (k^w)&(onCPU|onDisk) != 0 {
			p.say(o.Key, k, w&(onCPU|onDisk), rest)
		}
	case listed:
		_, waits := p.before.find(o.Key)
		p.list.setNote(i, k|bit(k.toAsk(p.audit) || waits, ask))
	case p.lines && !listable(o.Key):
		if k.doubtful() {
			p.Unaskable++
			p.unsaid(o.Key)
		}
	case k.doubtful() || !k.absent() || rest != nil:
		p.say(o.Key, k, gone, rest)
	}
	return nil
}

// end takes what a snapshot has and the index did not know. Behind it come the answers, in the order of the keys.
func (p *plan) end() {
	p.before.i = 0
	if !p.whole {
		return
	}
	for i := range p.list.Len() {
		if w := p.list.note(i); w&known == 0 && w != gone {
			p.say(p.list.Key(i), 0, w, nil)
		}
	}
}

// answer takes what the master said of the i-th listed key.
func (p *plan) answer(i int, a mooncake.Answer) {
	p.asked++
	key := p.list.Key(i)
	w, ok := said(a)
	if !ok {
		if a.State != mooncake.NotFound {
			p.Unaskable++
		}
		p.unsaid(key)
		return
	}
	p.say(key, p.list.note(i)&^ask, w, nil)
}

func (p *plan) say(key []byte, k, w word, rest []Medium) {
	var before *word
	if i, ok := p.before.find(key); ok {
		b := p.before.l.note(i)
		before = &b
	}
	except := p.whole && !listable(key) // index.View.Says takes no reading's row for such a key
	e := weigh(k, w, rest, before, except, func(what reading.What, medium []byte) {
		p.parts.add(&reading.Entry{What: what, Key: key, Medium: medium})
	})
	if e.agreed {
		p.agreed++
	}
	if e.contradicts {
		p.Contradict++
		p.found.add(key, w)
	}
	if e.contradictions > 0 {
		p.found.confirm(key, e.contradictions)
	}
}

// unsaid excepts an object from what the reading says.
func (p *plan) unsaid(key []byte) {
	p.Unsaid++
	p.parts.add(&reading.Entry{What: reading.Unsaid, Key: key})
}

// candidates are the objects of one scope of which a reading contradicted what was confirmed. A second one, candidateApart later,
// decides (R9).
type candidates struct {
	list *Listing // with the master's word
	real *Listing // what the second reading found too, with the number of media
}

// maxCandidates bounds them, in bytes of keys. What is left out is found by later readings: the first real contradiction flags the
// epoch (R11), and then nothing that the stream said of presence is confirmed there.
const maxCandidates = 16 << 20

func newCandidates() *candidates { return &candidates{&Listing{}, &Listing{}} }

func (c *candidates) add(key []byte, w word) {
	if c.list.Bytes() < maxCandidates {
		c.list.Add(key, w)
	}
}

func (c *candidates) confirm(key []byte, media int) {
	c.real.Add(key, word(min(media, 255)))
}
