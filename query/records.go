package query

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/kvjournal/kvjournal/journal"
)

// record is one record of the journal while it is read. It is valid until the function that got it returns.
type record struct {
	*journal.Header
	Offset uint64
	// Source is its source's name.
	Source string

	block  *journal.Block
	lone   *journal.Lone // in place of block
	index  int
	frames [][]byte
	seq    [8]byte
}

// Frames returns its frames, exactly as received.
func (r *record) Frames() ([][]byte, error) {
	if r.lone != nil {
		return r.lone.Frames, nil
	}
	var err error
	r.frames, err = r.block.Frames(r.index, r.frames[:0], &r.seq)
	return r.frames, err
}

// offsetsOf are the offsets that stretches span together: what lies behind low, up to high.
func offsetsOf(in []stretch) (low, high uint64) {
	for i := range in {
		if in[i].empty() {
			continue
		}
		if from := in[i].from.Offset; high == 0 || from < low {
			low = from
		}
		high = max(high, in[i].to.Offset)
	}
	return low, high
}

// eachRecord calls f with each record of the stretches, in the order of offsets, whatever their sources. Blocks are read and unpacked
// ahead, on other goroutines. f may end the reading with errEnough. progress is told offsets.
func (e *Engine) eachRecord(ctx context.Context, in []stretch, progress Progress, f func(*record) error) error {
	low, high := offsetsOf(in)
	if low >= high {
		return ctx.Err()
	}
	// Records may be pruned while they are read: what is missing then must not look as if nothing had happened.
	whole := func() error {
		if h := e.Journal.Horizon(); low < h.Offset {
			return &PrunedError{Horizon: h}
		}
		return nil
	}
	if err := whole(); err != nil {
		return err
	}
	of := make(map[uint32]*stretch, len(in))
	for i := range in {
		of[in[i].ID] = &in[i]
	}
	if high-low == 1 {
		if done, err := e.loneRecord(high, of, f); done {
			progress.tell(1, 1)
			return cmp.Or(err, ctx.Err())
		}
	}
	a := newReadAhead(ctx, e.Journal, low, high)
	defer a.stop()
	var r record
	var last *stretch
	begin := low
	for s := range a.out {
		if err := <-s.ready; err != nil {
			return err
		}
		r.block = s.block
		for i := range s.block.Len() {
			h := s.block.Header(i)
			if last == nil || last.ID != h.Source {
				if last = of[h.Source]; last == nil {
					continue
				}
			}
			if o := s.block.First + uint64(i); o <= max(low, last.from.Offset) || o > last.to.Offset {
				continue // what lies up to low was read: a block may have been merged with those before it meanwhile
			} else {
				r.Offset = o
			}
			r.Header, r.Source, r.index = h, last.Name, i
			if err := f(&r); errors.Is(err, errEnough) {
				return nil
			} else if err != nil {
				return err
			}
		}
		low = max(low, min(s.block.Last(), high))
		progress.tell(low-begin, high-begin)
		if low < high {
			if err := whole(); err != nil {
				return err
			}
		}
		a.free <- s
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// loneRecord is eachRecord for one offset, without the rest of its block. It is not done where the record cannot be read so: reading the block
// tells why.
func (e *Engine) loneRecord(offset uint64, of map[uint32]*stretch, f func(*record) error) (done bool, err error) {
	var l journal.Lone
	if e.Journal.Lone(&l, offset) != nil {
		return false, nil
	}
	s := of[l.Header.Source]
	if s == nil || offset <= s.from.Offset || offset > s.to.Offset {
		return true, nil
	}
	if err = f(&record{Header: &l.Header, Offset: offset, Source: s.Name, lone: &l}); errors.Is(err, errEnough) {
		err = nil
	}
	return true, err
}

// readAhead reads blocks in their order, and unpacks several at once, before they are asked for.
type readAhead struct {
	out    chan *slot // in the order of offsets; closed at the end
	free   chan *slot // takes back what was read
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// slot holds one block. ready gives nil when it is unpacked, or what went wrong.
type slot struct {
	block *journal.Block
	ready chan error
}

// slots is how many blocks are held at once, of about 1 MiB each: one being read, the others waiting or being unpacked.
const slots = 4

func newReadAhead(ctx context.Context, j *journal.Journal, low, high uint64) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{out: make(chan *slot, slots), free: make(chan *slot, slots), cancel: cancel}
	for range slots {
		a.free <- &slot{ready: make(chan error, 1)}
	}
	packed := make(chan *slot, slots) // no channel is ever full: there are but so many slots
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		a.work.Go(func() {
			for s := range packed {
				s.ready <- s.block.Load()
			}
		})
	}
	a.work.Go(func() {
		defer close(packed)
		defer close(a.out)
		for at := low; at < high; {
			var s *slot
			select {
			case s = <-a.free:
			case <-ctx.Done():
				return
			}
			b, err := j.NextBlock(s.block, at)
			if errors.Is(err, journal.ErrNotFound) {
				return
			}
			s.block = b
			a.out <- s
			if err != nil {
				s.ready <- err
				return
			}
			at = b.Last()
			packed <- s
		}
	})
	return a
}

// stop ends the goroutines: the journal may be closed behind it.
func (a *readAhead) stop() {
	a.cancel()
	a.work.Wait()
}
