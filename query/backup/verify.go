package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
)

// readerOptions open a journal beside one that is in use: with little memory.
func readerOptions(o Options) journal.Options {
	return journal.Options{FS: o.FS, Log: o.Log, Fatal: o.Fatal, CacheSize: 8 << 20, MemTableSize: 8 << 20}
}

func indexOptions(o Options) index.Options {
	return index.Options{FS: o.FS, Log: o.Log, Fatal: o.Fatal, CacheSize: 8 << 20, MemTableSize: 8 << 20}
}

// writeHead writes the head file of a copy. What the head file or the index of a directory at rest know of a lost tail is kept.
func writeHead(dir string, o Options) (err error) {
	jo := readerOptions(o)
	jo.Unfinished = true
	j, err := journal.OpenReadOnly(dir, jo)
	if err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	err = j.RenewHead(index.KnownTo(dir, indexOptions(o)))
	if err == nil {
		err = index.Told(j, indexOptions(o))
	}
	return errors.Join(err, j.Close())
}

// copied is a copy, open as a reader opens it; x is nil where its index cannot be used.
type copied struct {
	j *journal.Journal
	x *index.Index
}

func openCopy(dir string, unfinished bool, o Options) (*copied, error) {
	jo, xo := readerOptions(o), indexOptions(o)
	jo.Unfinished = unfinished
	j, err := journal.OpenReadOnly(dir, jo)
	if err != nil {
		return nil, err
	}
	c := &copied{j: j}
	xo.FS, xo.Passing = datadir.Overlay(o.FS), true
	if c.x, err = index.Open(j, false, xo); err != nil && !errors.Is(err, index.ErrRebuild) {
		return nil, errors.Join(err, j.Close())
	}
	return c, nil
}

func (c *copied) close() error {
	var err error
	if c.x != nil {
		err = c.x.Close()
	}
	return errors.Join(err, c.j.Close())
}

// verify opens the copy in dir and compares it with the journal it was made of, of which it must hold least.
func verify(ctx context.Context, dir string, source *journal.Journal, least *journal.Stats, o Options) (r *Report, f Facts, err error) {
	c, err := openCopy(dir, true, o)
	if err != nil {
		return nil, f, fmt.Errorf("opening the copy: %w", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	is := c.j.Durables()
	applied := uint64(0)
	if c.x != nil {
		applied = c.x.Applied() // a part of its journal, or it would not have been opened
	} else {
		o.Log.Warn("the index is left out of the copy: there is none that can be used; it is computed from the journal when it is first needed")
	}
	if is.Durable < least.Durable || is.Totals.Messages < least.Totals.Messages || is.Totals.Events < least.Totals.Events || is.Totals.RawBytes < least.Totals.RawBytes {
		return nil, f, fmt.Errorf("the copy holds offset %d, %d messages, %d events, and must hold offset %d, %d messages, %d events at least; it was thrown away, take another one",
			is.Durable, is.Totals.Messages, is.Totals.Events, least.Durable, least.Totals.Messages, least.Totals.Events)
	}
	compared, err := c.compare(ctx, source, o)
	if err != nil {
		return nil, f, fmt.Errorf("the copy differs from what it was made of, and was thrown away: %w", err)
	}
	r = &Report{
		JournalID: c.j.ID().String(), DurableOffset: is.Durable, AppliedOffset: applied, Events: is.Totals.Events, Messages: is.Totals.Messages,
		Sources: len(c.j.Sources()), Compared: compared, format: c.j.Format(),
	}
	return r, factsOf(c.j), nil
}

// sampleRecords is how many records are compared, spread evenly, the newest among them.
const sampleRecords = 64

// sample are n offsets behind from, up to last, or all of them, the newest first.
func sample(from, last uint64, n uint64) []uint64 {
	all := last - min(from, last)
	n = min(n, all)
	out := make([]uint64, 0, n)
	for i := range n {
		out = append(out, last-uint64(float64(i)*(float64(all)/float64(n))))
	}
	return out
}

// compare reads the copy's baseline, if it has one, and a sample of its records, compares them with the source's (nil: with nothing) and with the rows of the index.
func (c *copied) compare(ctx context.Context, source *journal.Journal, o Options) (Compared, error) {
	var n Compared
	if err := c.j.EachBaseline(ctx, func(_, _ []byte) error { return nil }); err != nil {
		return n, err
	}
	var mine, theirs *journal.Block
	offsets := sample(c.j.Horizon().Offset, c.j.Durable(), sampleRecords)
	for i, offset := range offsets {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		o.Progress(Progress{Step: "comparing", Done: uint64(i), Total: uint64(len(offsets))})
		b, err := blockOf(c.j, mine, offset)
		if errors.Is(err, journal.ErrNotFound) {
			mine = nil
			continue // a lost tail
		}
		if err != nil {
			return n, err
		}
		mine = b
		if err := mine.Load(); err != nil {
			return n, err
		}
		if source != nil {
			b, err := blockOf(source, theirs, offset)
			switch {
			case err == nil:
				theirs = b
				if err := sameRecord(mine, theirs, offset); err != nil {
					return n, err
				}
			case errors.Is(err, journal.ErrNotFound), errors.As(err, new(*journal.PrunedError)): // not durable there yet, or pruned since
				theirs = nil
			default:
				return n, err
			}
		}
		events, err := c.indexed(mine, offset)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", errIndex, err)
		}
		if err != nil {
			return n, err
		}
		n.Records, n.Events = n.Records+1, n.Events+events
	}
	return n, nil
}

// blockOf is the block that holds offset: b (nil: none yet) if it does, and else read into b.
func blockOf(j *journal.Journal, b *journal.Block, offset uint64) (*journal.Block, error) {
	if b != nil && b.Len() > 0 && b.First <= offset && offset <= b.Last() {
		return b, nil
	}
	return j.Block(b, offset)
}

func sameRecord(a, b *journal.Block, offset uint64) error {
	i, k := int(offset-a.First), int(offset-b.First)
	if *a.Header(i) != *b.Header(k) {
		return fmt.Errorf("offset %d has another header", offset)
	}
	var seqA, seqB [8]byte
	left, err := a.Frames(i, nil, &seqA)
	if err != nil {
		return err
	}
	right, err := b.Frames(k, nil, &seqB)
	if err != nil {
		return err
	}
	if len(left) != len(right) {
		return fmt.Errorf("offset %d has other frames", offset)
	}
	for f := range left {
		if !bytes.Equal(left[f], right[f]) {
			return fmt.Errorf("offset %d has other bytes", offset)
		}
	}
	return nil
}

// errIndex: the index is damaged, or is not that of its journal. It can always be computed anew.
var errIndex = errors.New("the index does not fit the journal")

// indexed looks the events of the record at offset up in the index, and returns how many those were.
func (c *copied) indexed(b *journal.Block, offset uint64) (int, error) {
	i := int(offset - b.First)
	h := b.Header(i)
	if c.x == nil || offset > c.x.Applied() || !h.Applies() {
		return 0, nil
	}
	var seq [8]byte
	frames, err := b.Frames(i, nil, &seq)
	if err != nil {
		return 0, err
	}
	var batch event.Batch
	batch.Scan(frames)
	view, err := c.x.View()
	if err != nil {
		return 0, err
	}
	defer view.Close()
	n := 0
	for k := range batch.Events {
		ev := &batch.Events[k]
		if ev.Type == event.Cleared {
			continue
		}
		at := index.Position{Offset: offset, Event: uint32(k + 1)}
		has, err := hasRow(view, &index.Object{Source: h.Source, Backend: ev.Backend, Tenant: ev.Tenant, Key: ev.Key}, at)
		if err != nil {
			return n, err
		}
		if !has {
			return n, fmt.Errorf("event %d of offset %d is not in the index", k+1, offset)
		}
		n++
	}
	return n, nil
}

// hasRow reports whether the history of the object has an event at the position.
func hasRow(view *index.View, o *index.Object, at index.Position) (bool, error) {
	h, err := view.History(o, index.Position{Offset: at.Offset, Event: at.Event - 1}, at, false)
	if err != nil {
		return false, err
	}
	ev, err := h.Next()
	has := err == nil && ev != nil && ev.Position == at
	return has, errors.Join(err, h.Close())
}
