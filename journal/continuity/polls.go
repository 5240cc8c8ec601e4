package continuity

// minQuiet is how far apart two polls must be sent to settle (R8), ns.
const minQuiet = 1e9

// Counters are what a master's status says of its publisher, since its process started.
type Counters struct {
	// Enabled: a publisher runs. If not, the other fields mean nothing.
	Enabled bool
	// Batches are the messages sent, Events the events in them, Dropped the events that a full queue dropped.
	Batches, Events, Dropped uint64
	// HasKeyless: the status has skipped_keyless_events; Keyless is its value, the per-object events not sent.
	HasKeyless bool
	Keyless    uint64
}

// Sum is the last sequence number that the counters amount to.
func (c *Counters) Sum() uint64 { return saturate(c.Batches, c.Dropped) }

// lower reports whether a counter is lower than in before, which one process cannot do.
func (c *Counters) lower(before *Counters) bool {
	return c.Batches < before.Batches || c.Events < before.Events || c.Dropped < before.Dropped ||
		c.HasKeyless && before.HasKeyless && c.Keyless < before.Keyless
}

// Conditions are lasting properties of a publisher process, as its status tells them.
type Conditions uint8

const (
	// PublisherOff: enabled is false; no change of this master is announced.
	PublisherOff Conditions = 1 << iota
	// Keyless: per-object events were suppressed by this process, which says nothing of these changes.
	Keyless
	// NoKeylessCounter: the status lacks skipped_keyless_events, as those of masters that change things silently (R11).
	NoKeylessCounter
)

// Outcome is what an answered poll shows. The caller journals it at the answer's place in the stream.
type Outcome struct {
	// Ignored: nothing can be said, for the process changed while the poll was under way, or none was sent.
	Ignored bool
	// Epoch of the source behind the answer.
	Epoch uint64
	// Settled: two polls far enough apart agree with each other and with what was received. Nothing of the stream was
	// missing at Since, the time at which the first of them was sent (R8).
	Settled bool
	Since   int64
	// Mark is MarkBehind or NoMark; Gap is valid where Gap.Cause is not CauseNone.
	Mark      MarkPlace
	MarkCause Cause
	Gap       Gap
	// Conditions of the process behind the endpoint, and whether they are other than those last reported of it. They concern
	// Epoch only if Delivers: the endpoint is the one that delivers.
	Conditions Conditions
	Changed    bool
	Delivers   bool
}

// Polls judges the status polls of one endpoint, one at a time. It lives beside the State of the endpoint's source, and
// both are told everything in the same order. The zero value, with its Endpoint set, has seen no poll.
type Polls struct {
	Endpoint int

	sent    sentPoll
	waiting bool
	base    answer   // the newest
	proof   answer   // the newest that agreed with all that was received
	first   sentPoll // of a pair that may settle, where pair
	pair    bool

	conditions        Conditions
	conditionsProcess uint64
}

// sentPoll is what was known when a poll was sent.
type sentPoll struct {
	at       int64
	process  uint64 // State.process
	seq      uint64
	changes  uint64
	delivers bool
}

// answer are the counters of a process; of none where process is 0 and known is false.
type answer struct {
	known   bool
	process uint64
	Counters
}

// of reports whether the answer came from this process.
func (a *answer) of(process uint64) bool { return a.known && a.process == process }

// Sent tells that a poll is sent now, at our clock's ns. A poll that was under way is given up. Times are only compared
// with each other, and reported as Since: a clock that steps forward between two polls makes them look further apart.
func (p *Polls) Sent(s *State, at int64) {
	process, seq := s.process(p.Endpoint)
	p.sent = sentPoll{at: at, process: process, seq: seq, changes: s.Changes, delivers: p.Endpoint == s.Endpoint}
	p.waiting = true
}

// Failed tells that the poll was not answered by a serving master. It shows nothing.
func (p *Polls) Failed() { p.waiting, p.pair = false, false }

// Answered judges the answer to the poll that was sent last, and moves s where it shows a loss or a restart.
func (p *Polls) Answered(s *State, c Counters) Outcome {
	process, _ := s.process(p.Endpoint)
	delivers := p.Endpoint == s.Endpoint
	o := Outcome{Epoch: max(s.Epoch, 1), Delivers: delivers}
	waiting := p.waiting
	p.waiting = false
	if !waiting || process != p.sent.process || delivers != p.sent.delivers {
		// Which process answered is not known: the one that was, or the one that a message has shown since.
		o.Ignored, p.pair = true, false
		p.base.known = p.base.known && process == p.sent.process
		return o
	}
	if !c.Enabled {
		p.pair = false
		p.condition(&c, process, &o)
		return o
	}
	switch restarted := p.base.of(process) && c.lower(&p.base.Counters) || saturate(c.Sum(), 1) < p.sent.seq; {
	case restarted && delivers:
		o.Mark, o.MarkCause, o.Gap = MarkBehind, PublisherRestart, s.restartUnseen()
		p.pair = false
	case restarted:
		s.forget(p.Endpoint)
		p.pair = false
	case delivers:
		p.settle(s, &c, &o)
	default:
		p.succeed(s, &c, &o)
	}
	process, _ = s.process(p.Endpoint)
	o.Epoch, o.Delivers = max(s.Epoch, 1), p.Endpoint == s.Endpoint
	p.base = answer{true, process, c}
	p.condition(&c, process, &o)
	return o
}

// settled reports whether this poll and an earlier one settle; first is the earlier one. This one may be the first of the next two.
func (p *Polls) settled(s *State, c *Counters) (first sentPoll, ok bool) {
	if p.sent.changes != s.Changes || !s.connected(p.Endpoint) {
		p.pair = false // something came while the poll was under way, or may come
		return first, false
	}
	first = p.first
	same := p.pair && first.process == p.sent.process && first.delivers == p.sent.delivers && first.changes == s.Changes &&
		p.base.of(p.sent.process) && p.base.Counters == *c && p.sent.at >= first.at
	if same && p.sent.at-first.at < minQuiet {
		return first, false
	}
	p.first, p.pair = p.sent, true
	return first, same
}

// settle judges what settled polls of the endpoint that delivers say.
func (p *Polls) settle(s *State, c *Counters, o *Outcome) {
	first, ok := p.settled(s, c)
	if !ok {
		return
	}
	known := Counters{}
	if p.proof.of(p.sent.process) {
		known = p.proof.Counters
	}
	if o.Settled = s.settle(c, saturatingSub(c.Dropped, known.Dropped), o); o.Settled {
		o.Since = first.at
		p.proof = answer{true, p.sent.process, *c}
	}
}

// succeed looks whether the endpoint leads now, though no message of it has come: its master serves, as a standby does not,
// a connection to it stands, and the one to the endpoint that delivered last does not, or nothing came by it.
func (p *Polls) succeed(s *State, c *Counters, o *Outcome) {
	if _, ok := p.settled(s, c); !ok || s.heard() && s.Break == Unbroken || !s.mayLead(p.Endpoint) {
		return
	}
	if s.heard() {
		o.Mark, o.MarkCause, o.Gap = MarkBehind, PublisherRestart, Gap{Cause: PublisherRestart, Epoch: s.Epoch + 1}
	}
	s.takeOver(p.Endpoint, s.heard())
	s.begin()
	s.Keyed, s.Anchored, s.HasEventID, s.EventID = false, false, true, 0
	s.FromPoll = o.Mark != NoMark
	p.pair = false
}

// condition finds the conditions of the process that answered.
func (p *Polls) condition(c *Counters, process uint64, o *Outcome) {
	known := Conditions(0)
	if process == p.conditionsProcess {
		known = p.conditions
	}
	now := known | PublisherOff
	if c.Enabled {
		now = 0
		if c.HasKeyless && c.Keyless > 0 {
			now |= Keyless
		}
		if !c.HasKeyless {
			now |= NoKeylessCounter
		}
	}
	// Of another process they are told again: they concern another epoch.
	o.Changed = now != p.conditions || process != p.conditionsProcess && now != 0
	o.Conditions, p.conditions, p.conditionsProcess = now, now, process
}

// saturatingSub subtracts down to 0.
func saturatingSub(a, b uint64) uint64 {
	if b > a {
		return 0
	}
	return a - b
}
