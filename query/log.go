package query

import (
	"context"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// LogOptions say which of the journal's records Log tells of, and how.
type LogOptions struct {
	Where
	Span
	// Key and Prefix of object_key, nil: any. Medium, empty: any. A `cleared`, which names neither a key nor a medium, is about every
	// object of its scope and so passes all three.
	Key, Prefix Bytes
	Medium      string
	// Types are the types of lines wanted (LogTypes), or "event" or "fact", which stand for several. None: all, but where objects
	// are chosen events only.
	Types []string
	// Limit is how many lines are given at most; 0: all.
	Limit uint64
	// Raw gives messages, each with its frames, instead of what is in them, those of which any event is wanted; and the records of what
	// the master said.
	Raw bool
	// After leaves out the records up to this offset.
	After uint64
	// Follow goes on with what is recorded meanwhile, until ctx ends.
	Follow bool
	// Reached, if not nil, is told an offset whenever everything wanted up to it was given.
	Reached func(offset uint64) error
}

// Log calls f with a line for each event and fact recorded in a span, in the order of offsets. The line is valid until f returns.
//
// A span's ends are found in each source's stream by its messages. Facts have no publisher time: between the messages of a span they
// belong to it, and at its ends if they were received within it.
func (e *Engine) Log(ctx context.Context, o LogOptions, progress Progress, f func(*LogLine) error) error {
	if o.Follow && o.To.Kind != Latest {
		return usagef("following has no end: leave --to out")
	}
	w, err := newFilter(&o)
	if err != nil {
		return err
	}
	sources, err := e.sources(o.Source)
	if err != nil {
		return err
	}
	if h := e.Journal.Horizon(); o.After > 0 && o.After < h.Offset {
		return &PrunedError{Horizon: h}
	}
	at := e.Journal.Durable()
	in, edges, err := e.logStretches(sources, &o, at)
	if err != nil {
		return err
	}
	l := logger{e: e, o: &o, filter: w, edges: edges, f: f, before: map[uint32]placed{}}
	for {
		err := e.eachRecord(ctx, in, progress, l.record)
		if err != nil || l.full {
			return err
		}
		if o.Reached != nil {
			if err := o.Reached(at); err != nil {
				return err
			}
		}
		if !o.Follow {
			return nil
		}
		d, err := e.Journal.WaitDurable(ctx, at)
		if err != nil {
			return err
		}
		if sources, err = e.sources(o.Source); err != nil { // there may be new ones
			return err
		}
		in = in[:0]
		for _, s := range sources {
			in = append(in, stretch{Source: s, from: index.Behind(max(at, o.After)), to: index.Behind(d)})
		}
		at, l.edges = d, nil
	}
}

// spanEdge is where a span by time begins and ends in a source's stream; facts outside of it count only if they were received within.
type spanEdge struct {
	first, last  uint64 // offsets
	fromMs, toMs int64
}

// logStretches places the span, and widens it by the facts at its ends; end as in stretches.
func (e *Engine) logStretches(sources []journal.Source, o *LogOptions, end uint64) ([]stretch, map[uint32]spanEdge, error) {
	in, err := e.stretches(sources, o.Span, end)
	if err != nil {
		return nil, nil, err
	}
	edges := map[uint32]spanEdge{}
	for i := range in {
		s := &in[i]
		g := spanEdge{first: s.from.Offset, last: s.to.Offset, fromMs: o.From.Ms, toMs: o.To.Ms}
		if o.From.Kind != AtTime && o.To.Kind != AtTime {
			s.from.Offset = max(s.from.Offset, o.After)
			continue
		}
		if o.From.Kind == AtTime && s.from.Offset > 0 {
			last, err := e.lastBatch(s.ID, s.from.Offset)
			if err != nil {
				return nil, nil, err
			}
			s.from = index.Behind(max(last.Offset, e.Journal.Horizon().Offset))
		}
		if o.To.Kind == AtTime {
			next, err := e.Journal.At(s.ID, o.To.Ms)
			if err != nil {
				return nil, nil, err
			}
			if next.Next.Offset == 0 {
				s.to = index.Behind(end)
			}
		}
		if o.From.Kind != AtTime {
			g.fromMs = minMs
		}
		if o.To.Kind != AtTime {
			g.toMs = maxMs
		}
		edges[s.ID] = g
		s.from.Offset = max(s.from.Offset, o.After)
	}
	return in, edges, nil
}

const (
	minMs = -1 << 63
	maxMs = 1<<63 - 1
)

// placed is a source's last message.
type placed struct {
	offset  uint64
	hasTime bool
	time    int64
}

// logger turns records into lines.
type logger struct {
	e      *Engine
	o      *LogOptions
	filter eventFilter
	edges  map[uint32]spanEdge
	f      func(*LogLine) error
	before map[uint32]placed // the last message of each source; absent: not read yet
	given  uint64
	full   bool
	scan   event.Batch
	line   LogLine
}

func (l *logger) give() error {
	if err := l.f(&l.line); err != nil {
		return err
	}
	if l.given++; l.given == l.o.Limit {
		l.full = true
		return errEnough
	}
	return nil
}

func (l *logger) record(r *record) error {
	if g, ok := l.edges[r.Header.Source]; ok && (r.Offset <= g.first || r.Offset > g.last) {
		if ms := r.Received / 1e6; r.Kind == journal.Message && !r.Duplicate || ms < g.fromMs || ms > g.toMs {
			return nil
		}
	}
	var err error
	if l.o.Raw {
		err = l.raw(r)
	} else {
		err = l.tell(r)
	}
	if r.Kind == journal.Message && !r.Duplicate {
		l.before[r.Header.Source] = placed{r.Offset, r.HasTime, r.Time}
	}
	return err
}

// tell gives the lines of a record: the gap it shows, then what it is.
func (l *logger) tell(r *record) error {
	types := l.filter.types
	if r.Gap.Cause != continuity.CauseNone && r.Kind != journal.TailLost && types.has(LogGap) {
		if err := l.gap(r); err != nil {
			return err
		}
	}
	switch {
	case r.Kind != journal.Message:
		return l.fact(r)
	case r.Duplicate:
		return l.plain(r, LogDuplicate)
	case r.Damage != event.None:
		return l.plain(r, LogDamaged)
	case r.Events == 0:
		return l.plain(r, LogEmpty)
	case types&eventTypes == 0:
		return nil
	}
	if err := l.decode(r); err != nil {
		return err
	}
	begun := false
	for i := range l.scan.Events {
		ev := &l.scan.Events[i]
		if !l.filter.wants(ev) {
			continue
		}
		if !begun {
			begun = true
			l.line.reset(r, "")
		}
		l.line.event(uint32(i+1), ev)
		if err := l.give(); err != nil {
			return err
		}
	}
	return nil
}

func (l *logger) decode(r *record) error {
	frames, err := r.Frames()
	if err != nil {
		return err
	}
	if l.scan.Scan(frames); l.scan.Damage != event.None || uint32(len(l.scan.Events)) != r.Events {
		return &journal.CorruptError{Offset: r.Offset, What: "the message does not decode as it did when it was recorded"}
	}
	return nil
}

// plain gives a line that a message as a whole is.
func (l *logger) plain(r *record, name string) error {
	if !l.filter.types.has(name) {
		return nil
	}
	l.line.reset(r, name)
	if r.Damage != event.None {
		l.line.Damage = r.Damage.String()
	}
	return l.give()
}

func (l *logger) fact(r *record) error {
	if !l.filter.types.has(r.Kind.String()) {
		return nil
	}
	l.line.reset(r, r.Kind.String())
	if r.Kind == journal.TailLost {
		g, err := l.gapOf(r)
		if err != nil {
			return err
		}
		l.line.Gap = g
	}
	if hasContent(r.Kind) {
		var err error
		if l.line.Content, err = contentOf(r); err != nil {
			return err
		}
	}
	return l.give()
}

// gap gives the line of what is missing before a message.
func (l *logger) gap(r *record) error {
	g, err := l.gapOf(r)
	if err != nil {
		return err
	}
	l.line.reset(r, LogGap)
	l.line.Gap = g
	return l.give()
}

// raw gives a message with its frames, if anything of it is wanted, and records of what the master said.
func (l *logger) raw(r *record) error {
	if r.Kind != journal.Message {
		if !hasContent(r.Kind) || !l.filter.types.has(r.Kind.String()) {
			return nil
		}
		frames, err := r.Frames()
		if err != nil {
			return err
		}
		l.line.reset(r, r.Kind.String())
		l.line.Frames, l.line.raw = frames, true
		return l.give()
	}
	types, name, wanted := l.filter.types, LogMessage, false
	switch {
	case r.Duplicate:
		name, wanted = LogDuplicate, types.has(LogDuplicate)
	case r.Damage != event.None:
		name, wanted = LogDamaged, types.has(LogDamaged)
	case r.Events == 0:
		wanted = types.has(LogEmpty)
	default:
		if err := l.decode(r); err != nil {
			return err
		}
		for i := range l.scan.Events {
			if wanted = l.filter.wants(&l.scan.Events[i]); wanted {
				break
			}
		}
	}
	if !wanted && (r.Gap.Cause == continuity.CauseNone || !types.has(LogGap)) {
		return nil
	}
	frames, err := r.Frames()
	if err != nil {
		return err
	}
	l.line.reset(r, name)
	l.line.Frames, l.line.raw = frames, true
	if name == LogDamaged {
		l.line.Damage = r.Damage.String()
	}
	return l.give()
}
