package query

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/pause"
)

// Engine answers questions from a journal and its index. It may be used from any number of goroutines at once.
type Engine struct {
	Journal *journal.Journal
	Index   *index.Index
	// Live reports whether a source is connected; nil where no recorder runs.
	Live func(source uint32) bool
	// Tail tells since when (our clock, Unix ns) it is proven that nothing of a source's stream is missing behind the record at offset, its
	// newest; since is 0 where nothing proves it (R8). nil: no master is asked.
	Tail func(ctx context.Context, source uint32) (since int64, offset uint64, err error)
	// Counted keeps the number of live objects for a while; nil: it is counted each time.
	Counted *CountCache
	// Credits keeps what losses were credited with; nil: each question about losses goes through all that lie before them.
	Credits *CreditCache
	// LostEnd are records that are gone from the end of a journal at rest; nil: none.
	LostEnd *LostEnd
	// Now is our clock; nil: time.Now.
	Now func() time.Time
	// Dir is the data directory, for those who are told commands; empty: it is not told.
	Dir string
}

// Clock is the time on our clock: the zero of "-5m".
func (e *Engine) Clock() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// indexPatience is how long a question about a recorded position waits for the index of a running recorder.
const indexPatience = 10 * time.Second

// viewAt opens a view in which offset is indexed.
func (e *Engine) viewAt(ctx context.Context, offset uint64) (*index.View, error) {
	v := &index.View{}
	return v, e.openView(ctx, v, offset)
}

// openView is viewAt in the caller's memory.
func (e *Engine) openView(ctx context.Context, v *index.View, offset uint64) error {
	var deadline time.Time
	for {
		if err := e.Index.OpenView(v); err != nil || v.Applied() >= offset {
			return err
		}
		applied := v.Applied()
		v.Close()
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(indexPatience)
		}
		if now.After(deadline) {
			return fmt.Errorf("offset %d is recorded but not indexed yet (the index is at %d); ask again, or see `kvjournal stats` for its lag", offset, applied)
		}
		e.Index.Hurry()
		if err := pause.For(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// sources returns the source of that name, or all.
func (e *Engine) sources(name string) ([]journal.Source, error) {
	if name == "" {
		return e.Journal.Sources(), nil
	}
	if s, ok := e.Journal.SourceNamed(name); ok {
		return []journal.Source{s}, nil
	}
	all := e.Journal.Sources()
	names := make([]string, 0, len(all))
	for i := range all {
		names = append(names, all[i].Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, usagef("no source %q: nothing was recorded yet", name)
	}
	return nil, usagef("no source %q; there is %s", name, strings.Join(names, ", "))
}
