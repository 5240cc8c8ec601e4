package oracle

import "github.com/kvjournal/kvjournal/journal/event"

// publisher is one process life: the store, the bounded queue, the hand of the sending thread, and the numbers.
//
// Its queue drops the oldest when it is full and reserves a seq for it at once, even while a batch taken before is not
// numbered yet (R4). Events are numbered when they are sent.
type publisher struct {
	store *store
	limit int // of the queue, in events; 0: none
	queue []note
	hand  []note
	seq   uint64 // the last used or reserved
	id    uint64 // the last event_id
}

func newPublisher(limit int, keyless bool) *publisher {
	p := &publisher{limit: limit}
	p.store = &store{held: map[placement]bool{}, sink: p.enqueue, keyless: keyless}
	return p
}

func (p *publisher) enqueue(n note) {
	if p.limit > 0 && len(p.queue) >= p.limit {
		p.queue = p.queue[1:]
		p.seq++
	}
	p.queue = append(p.queue, n)
}

// take moves up to a full batch into an empty hand.
func (p *publisher) take() {
	if len(p.hand) > 0 {
		return
	}
	n := min(len(p.queue), fullBatch)
	p.hand, p.queue = p.queue[:n:n], p.queue[n:]
}

// outgoing is a batch with its numbers.
type outgoing struct {
	seq    uint64
	time   int64 // as it says
	dated  bool  // time is the publisher's clock
	events []event.Fields
	truth  Truth
}

// send numbers the hand.
func (p *publisher) send(time int64) outgoing {
	p.seq++
	b := outgoing{seq: p.seq, time: time, dated: true}
	for _, n := range p.hand {
		p.id++
		b.events = append(b.events, event.Fields{
			Type: n.kind, ID: p.id, Timestamp: time,
			Tenant: n.at.object.Tenant, Backend: n.at.object.Backend, Key: n.at.object.Key, Medium: n.at.medium,
		})
	}
	p.hand = nil
	until := len(p.store.history)
	if len(p.queue) > 0 {
		until = p.queue[0].change
	}
	b.truth = p.store.tell(until)
	return b
}

func (p *publisher) idle() bool { return len(p.hand) == 0 && len(p.queue) == 0 }
