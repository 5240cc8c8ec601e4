package service

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/index/reconcile"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/backup"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// restedDir is a directory at rest that questions are answered from, with those who hold it. It implements httpapi.Source.
type restedDir struct {
	a       *AtRest
	stamp   string
	handler http.Handler
	metrics *metrics
	ctx     context.Context // ends when it is given up
	cancel  context.CancelFunc
	hurt    atomic.Bool // a question met a damage of the index

	mu      sync.Mutex
	holders int
	gone    chan struct{} // closed when it is closed
	err     error
}

// newRestedDir is held once, by Front.
func newRestedDir(a *AtRest) *restedDir {
	d := &restedDir{a: a, stamp: a.stamp(), holders: 1, gone: make(chan struct{})}
	a.Credits = &query.CreditCache{}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.handler, d.metrics = httpapi.Handler(d), newMetrics(d)
	return d
}

// hold keeps it open until release; false where it is closed.
func (d *restedDir) hold() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holders == 0 {
		return false
	}
	d.holders++
	return true
}

func (d *restedDir) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holders == 0 {
		return
	}
	if d.holders--; d.holders == 0 {
		d.cancel()
		d.err = d.a.Close()
		close(d.gone)
	}
}

// stamp tells one state of the directory's files from another: a writer may have come and gone.
func (a *AtRest) stamp() string {
	s := ""
	for _, name := range []string{"head", "journal", "index"} {
		if info, err := a.fs.Stat(a.fs.PathJoin(a.Dir, name)); err == nil {
			s += fmt.Sprintln(name, info.ModTime().UnixNano(), info.Size())
		}
	}
	return s
}

// Undisturbed implements httpapi.Guarded.
func (d *restedDir) Undisturbed() error {
	if err := d.a.Undisturbed(); err != nil {
		return fmt.Errorf("a writer started while this was read, ask again: %w", err)
	}
	if d.a.stamp() != d.stamp {
		return fmt.Errorf("the directory was written to while this was read, ask again")
	}
	return nil
}

// Failed implements httpapi.Healer.
func (d *restedDir) Failed(err error) error {
	if !index.Damage(err) {
		return err
	}
	d.hurt.Store(true)
	return fmt.Errorf("the index is damaged, and is computed anew when it is asked again: %w", err)
}

// Engine implements httpapi.Source.
func (d *restedDir) Engine() (*query.Engine, error) { return &d.a.Engine, nil }

// Recorder implements httpapi.Source: none runs.
func (d *restedDir) Recorder() *query.RecorderStats { return nil }

var errNoRecorder = &query.UsageError{Message: "no recorder runs on this directory: start `kvjournal record`"}

// Rebuild implements httpapi.Source.
func (d *restedDir) Rebuild(context.Context, func(applied, total uint64)) error { return errNoRecorder }

// Backup implements httpapi.Source.
func (d *restedDir) Backup(context.Context, string, func(backup.Progress)) (*backup.Report, error) {
	return nil, errNoRecorder
}

// Reconcile implements httpapi.Source.
func (d *restedDir) Reconcile(context.Context, string, reconcile.Request) (*reconcile.Report, error) {
	return nil, errNoRecorder
}

// Metrics implements httpapi.Metered.
func (d *restedDir) Metrics() http.Handler { return d.metrics.handler }

// figures tells what is known of a directory at rest.
func (d *restedDir) figures(f *figures) {
	f.yes("index_open", true)
	diskFigures(f, d.a.fs, d.a.Dir)
	storeFigures(f, d.a.Journal, d.a.Index)
}
