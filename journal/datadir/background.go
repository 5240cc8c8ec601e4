package datadir

import (
	"log/slog"
	"sync"
	"time"
)

// sayEvery bounds how often the log tells of errors in the background.
const sayEvery = 10 * time.Second

// Background takes what a database meets in work that nobody waits for: Pebble tries it again at once, and for ever. It is said now and
// then, with how often it came; who does wait can see that it comes again and again.
type Background struct {
	log      *slog.Logger
	database string

	mu    sync.Mutex
	said  time.Time
	times int // since said
	all   int
	last  error
}

// NewBackground tells log, where that is not nil, of a database's errors.
func NewBackground(log *slog.Logger, database string) *Background {
	return &Background{log: log, database: database}
}

// Met is told of each error.
func (b *Background) Met(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times, b.all, b.last = b.times+1, b.all+1, err
	if b.log == nil || time.Since(b.said) < sayEvery {
		return
	}
	b.log.Error("work in the background failed and is tried again", "database", b.database, "error", err.Error(), "times", b.times)
	b.said, b.times = time.Now(), 0
}

// Errors counts them, and returns the last.
func (b *Background) Errors() (n int, last error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all, b.last
}
