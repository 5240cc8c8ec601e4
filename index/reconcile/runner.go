package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kvjournal/kvjournal/journal/reading"
)

// Options of a Runner.
type Options struct {
	// Choose returns the master to read, the one whose endpoint delivers the source's messages now. It is called once a reading; an
	// error counts as one of the master's.
	Choose func(ctx context.Context) (Master, error)
	Log    Log
	Index  Index
	Timing Timing
	// Backend tells the backend_id of the current epoch where the source's messages have not told it since the recorder began; nil, or
	// false: then there is no reading before the first message. It must be sure: what the master has is booked under it.
	Backend func(epoch uint64) ([]byte, bool)
	// Ended, if not nil, is called with each attempt of Run that ended: r is nil where err is not.
	Ended func(r *Report, err error)
	// Say takes what an operator should know. nil: nothing is said.
	Say *slog.Logger
	// Clock and Random are for tests. nil: the real ones.
	Clock  Clock
	Random func() float64
}

// Runner makes the readings of one source, one at a time.
type Runner struct {
	o        Options
	slot     chan struct{} // holds a value while a reading is made
	schedule schedule      // Run's
	waiting  *waiting      // the reading whose contradictions wait; whoever holds the slot
	under    atomic.Pointer[underway]
}

// New returns a runner; it does nothing yet.
func New(o Options) *Runner {
	o.Timing = o.Timing.withDefaults()
	if o.Say == nil {
		o.Say = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Runner{o: o, slot: make(chan struct{}, 1), schedule: schedule{t: o.Timing}}
}

// Request is what a reading should be.
type Request struct {
	// Why is one of reading's reasons. Empty: OnDemand, or Snapshot where there is one.
	Why string
	// Audit: the media of all listed objects are asked, not only where something is in doubt.
	Audit bool
	// DryRun: nothing is written. The report tells what would be.
	DryRun bool
	// Snapshot is read instead of the master's listing; nil: none. The master's counters are asked all the same.
	Snapshot Snapshot
	// Progress, if not nil, is told how far it is; by Read at least once a second, by one goroutine at a time.
	Progress func(Progress)
	// Sample is how many corrections the report shows; 0: 10.
	Sample int

	until time.Time // Read's: until when what is not the reading itself may be waited for; zero: for ever
}

// Progress is how far a reading is. Total is 0 where it is not known.
type Progress struct {
	Step  string `json:"step"` // one of the Step constants
	Done  int    `json:"done"`
	Total int    `json:"total,omitempty"`
	// Seconds is for how long it has been at this step.
	Seconds int `json:"seconds,omitempty"`
	// Reason is why it begins again, or what it waits for.
	Reason string `json:"reason,omitempty"`
}

// The steps of a reading, as Progress names them.
const (
	StepTurn      = "turn"      // for another reading, which Reason tells of
	StepBegin     = "begin"     // the counters, and until the index has come so far
	StepAgain     = "again"     // the one before did not hold: Reason
	StepSnapshot  = "snapshot"  // until it lies there
	StepListing   = "listing"   // keys that came
	StepComparing = "comparing" // objects compared with the listing
	StepAsking    = "asking"    // keys asked for
	StepWaiting   = "waiting"   // for the end: all that was seen must have been announced
	StepWriting   = "writing"
)

// Report is what a reading came to.
type Report struct {
	reading.Ended
	counts
	// Offset is that of the record that ended it, 0 in a dry run.
	Offset uint64 `json:"offset,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Touched counts entries that were left out, because the object had an event of its own meanwhile.
	Touched int `json:"touched"`
	// Traffic: messages came between its begin and its end.
	Traffic bool `json:"traffic"`
	// First are the first corrections.
	First []Correction `json:"-"`
}

// left reports whether doubts may be left that another reading would resolve: an object with an event meanwhile keeps what is in doubt.
func (r *Report) left() bool { return r.Traffic && r.Doubts > r.Unaskable }

// Read makes one reading, when none is under way any more. It tries again, at most once a second, while what it needs comes and goes
// (ErrBroken, ErrNoEnd), but with a Snapshot, which would be of the wrong moment then. Any other error ends it at once. It begins none, or
// no other one, when Timing.Patience is over: then the error says what was in the way.
func (r *Runner) Read(ctx context.Context, q Request) (*Report, error) {
	if q.Why == "" {
		q.Why = reading.OnDemand
		if q.Snapshot != nil {
			q.Why = reading.Snapshot
		}
	}
	if q.Progress != nil {
		t, end := newTeller(q.Progress)
		defer end()
		q.Progress = t.tell
	}
	q.until = r.o.Clock.Now().Add(r.o.Timing.Patience)
	for tries := 1; ; tries++ {
		began := r.o.Clock.Now()
		report, err := r.once(ctx, q)
		if err == nil || q.Snapshot != nil || !(errors.Is(err, ErrBroken) || errors.Is(err, ErrNoEnd)) {
			return report, err
		}
		if !r.o.Clock.Now().Before(q.until) {
			return nil, fmt.Errorf("the master was read %d times within %v, and no reading held; the last one: %w. Nothing was changed. The recorder goes on trying after each loss; ask again when the stream is calmer",
				tries, r.o.Timing.Patience, err)
		}
		r.o.Say.Info("reading the master again", "reason", err)
		if q.Progress != nil {
			q.Progress(Progress{Step: StepAgain, Reason: err.Error()})
		}
		if serr := r.o.Clock.Sleep(ctx, began.Add(r.o.Timing.Every).Sub(r.o.Clock.Now())); serr != nil {
			return nil, fmt.Errorf("%w (before that: %w)", serr, err)
		}
	}
}

// once makes one attempt, alone.
func (r *Runner) once(ctx context.Context, q Request) (*Report, error) {
	if err := r.turn(ctx, q.Progress, q.left(r.o.Clock.Now())); err != nil {
		return nil, err
	}
	u := newUnderway(q.Why, r.o.Clock.Now())
	r.under.Store(u)
	defer func() {
		r.under.Store(nil)
		<-r.slot
	}()
	m, err := r.o.Choose(ctx)
	if err != nil {
		return nil, asAdmin(ctx, err)
	}
	a := &attempt{r: r, q: q, m: m, clock: r.o.Clock, under: u}
	return a.run(ctx)
}

// left is how long what is not the reading itself may still take; nil: any time.
func (q *Request) left(now time.Time) *time.Duration {
	if q.until.IsZero() {
		return nil
	}
	left := max(0, q.until.Sub(now))
	return &left
}

func asAdmin(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &AdminError{err}
}

// look is how often Run looks whether something is due.
const look = 100 * time.Millisecond

// Run makes a reading when one is due, until ctx ends; then it returns ctx's error.
func (r *Runner) Run(ctx context.Context) error {
	for {
		if err := r.step(ctx); err != nil {
			return err
		}
	}
}

// step looks once, and makes the reading that is due, or waits a little.
func (r *Runner) step(ctx context.Context) error {
	doubt, err := r.o.Index.Doubt(ctx)
	if err != nil {
		return err
	}
	why, in, ok := r.schedule.due(r.o.Clock.Now(), doubt)
	if !ok || in > 0 {
		if !ok || in > look {
			in = look
		}
		return r.o.Clock.Sleep(ctx, in)
	}
	began := r.o.Clock.Now()
	report, err := r.once(ctx, Request{Why: why, Audit: why == reading.Audit})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.schedule.ended(began, r.o.Clock.Now(), doubt.Mark, report, err, r.o.Random())
	r.tell(report, err)
	return nil
}

func (r *Runner) tell(report *Report, err error) {
	var admin *AdminError
	switch {
	case err == nil && report.Contradictions > 0:
		r.o.Say.Error("the master changed things without an event: the epoch is flagged silent", "contradictions", report.Contradictions, "offset", report.Offset)
	case err == nil && report.Contradict > 0:
		r.o.Say.Warn("the master contradicts the stream; another reading decides", "objects", report.Contradict, "in", r.o.Timing.Apart)
	case errors.As(err, &admin):
		r.o.Say.Warn("the master could not be read", "error", err, "attempts", r.schedule.failures)
	case errors.Is(err, ErrDisconnected), errors.Is(err, ErrBackend): // so it is until the source speaks
		r.o.Say.Debug("no reading of the master can be made yet", "reason", err)
	case err != nil:
		r.o.Say.Info("a reading of the master did not hold", "reason", err)
	default:
		r.o.Say.Debug("the master was read", "why", report.Why, "objects", report.Objects, "doubts", report.Doubts, "corrections", report.Corrections, "ms", report.TookMs)
	}
	if r.o.Ended != nil {
		r.o.Ended(report, err)
	}
}
