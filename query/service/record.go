package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/subscribe"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// SourceConfig is a publisher to record.
type SourceConfig struct {
	Name      string
	Endpoints []string
	Masters   []string
}

// Config of a Service.
type Config struct {
	Dir      string
	Sources  []SourceConfig
	Recorder recorder.Options
	// Master says how the sources' masters are asked.
	Master MasterConfig
	// MinFree: recording pauses while fewer bytes are free on the disk of Dir. 0: never; then a full disk stalls it.
	MinFree uint64
	// Retention says what is kept.
	Retention Retention
	// Listen says where others than the owner of Dir are answered; the zero value: nowhere.
	Listen httpapi.Listen
	// ReadyLag is how many records the index may be behind for the service to call itself ready. 0: DefaultReadyLag.
	ReadyLag uint64
	// ObjectCache is index.Options.ObjectCache.
	ObjectCache int64
	// FS; nil: the operating system's.
	FS  vfs.FS
	Log *slog.Logger
}

// Service records, indexes and answers, all in one process.
type Service struct {
	log     *slog.Logger
	begun   time.Time
	journal *journal.Journal
	rec     *recorder.Recorder
	cache   *pebble.Cache
	fs      vfs.FS
	minFree uint64
	// roomEvery is how often a full disk is tried again; 0: the default.
	roomEvery time.Duration
	dir       string
	masters   []*masters
	recorded  []journal.Source
	readyLag  uint64
	objects   int64 // index.Options.ObjectCache
	metrics   *metrics
	address   net.Addr // where others are answered, nil: nowhere

	backups  sync.Mutex // held while one is taken
	counted  query.CountCache
	credits  query.CreditCache
	index    atomic.Pointer[index.Index]
	indexErr atomic.Pointer[error]
	opened   chan struct{} // closed when the index is open, or will not be
	wounds   chan wounded  // damages of the index that are to be seen to
	healing  sync.Mutex    // held while one is

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // index, HTTP
	done   chan struct{}
	err    error
}

// receiverFirst is the share of the recorder's buffer above which the materializer waits, so that the processor is the
// receiver's.
const receiverFirst = 8 // one eighth

// Record starts a service. It records from when this returns until ctx ends or the storage fails: see Wait.
func Record(ctx context.Context, c Config) (*Service, error) {
	if len(c.Sources) == 0 {
		return nil, &query.UsageError{Message: "no source to record: give --endpoint tcp://HOST:PORT"}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := datadir.CheckDescriptors(); err != nil {
		return nil, err
	}
	c.Recorder.Log = c.Log
	if c.FS == nil {
		c.FS = vfs.Default
	}
	c.Recorder.Room = recorder.Room{Least: c.MinFree, Every: c.Recorder.Room.Every, Free: func() (uint64, error) {
		usage, err := c.FS.GetDiskUsage(c.Dir)
		return usage.AvailBytes, err
	}}
	s := &Service{log: c.Log, begun: time.Now(), fs: c.FS, minFree: c.MinFree, roomEvery: c.Recorder.Room.Every, dir: c.Dir, opened: make(chan struct{}), wounds: make(chan wounded, 1), done: make(chan struct{})}
	s.metrics = newMetrics(s)
	s.objects = c.ObjectCache
	s.readyLag = cmp.Or(c.ReadyLag, DefaultReadyLag)
	s.ctx, s.cancel = context.WithCancel(ctx)
	var err error
	s.journal, s.cache, err = openJournal(ctx, c.Dir, "kvjournal record", false, Options{FS: c.FS, Log: c.Log}, journal.Options{RoomUntil: s.ctx.Done(), RoomEvery: c.Recorder.Room.Every, Committed: s.metrics.committed})
	if err != nil {
		s.cancel()
		return nil, err
	}
	j, cache := s.journal, s.cache
	if err := s.start(c); err != nil {
		s.cancel()
		err = errors.Join(err, j.Close())
		cache.Unref()
		return nil, err
	}
	return s, nil
}

func (s *Service) start(c Config) error {
	var sources []journal.Source
	for _, sc := range c.Sources {
		src, err := s.journal.EnsureSource(sc.Name, sc.Endpoints, sc.Masters)
		if err != nil {
			return err
		}
		sources = append(sources, src)
	}
	s.recorded = sources
	var err error
	if s.rec, err = recorder.New(s.journal, sources, c.Recorder); err != nil {
		return err
	}
	if err := s.prepare(c, sources); err != nil {
		return errors.Join(err, s.rec.Discard())
	}
	return nil
}

// prepare is the rest of start; what fails in it leaves a recorder that does not run.
func (s *Service) prepare(c Config, sources []journal.Source) error {
	for _, source := range sources {
		m, err := s.newMasters(source, c.Master)
		if err != nil {
			return err
		}
		if m != nil {
			s.masters = append(s.masters, m)
		}
	}
	listener, unlisten, err := listen(c.Dir)
	if err != nil {
		return err
	}
	server := httpapi.NewServer(s.log)
	if s.address, err = c.Listen.Start(server, s, s.log); err != nil {
		unlisten()
		return errors.Join(err, listener.Close())
	}
	server.Serve(listener, httpapi.Handler(s), nil, "the socket")
	indexing, stopIndexing := context.WithCancel(context.Background())
	s.work.Go(func() { s.keepIndex(indexing) })
	s.work.Go(func() { s.keepPruned(s.ctx, c.Retention) })
	s.work.Go(func() { s.keepTellingLosses(indexing) })
	for _, m := range s.masters {
		m.start(s.ctx, s)
	}
	go func() {
		defer close(s.done)
		s.err = s.rec.Run(s.ctx)
		s.cancel()
		unlisten()
		server.End()
		stopIndexing()
		s.work.Wait()
		for _, m := range s.masters {
			m.close()
		}
		s.err = errors.Join(s.err, s.close())
	}()
	return nil
}

// reclaimPatience is how long a prune of a recorder waits for space: the next prune waits for it.
const reclaimPatience = 20 * time.Second

// keepIndex opens the index and follows the journal. A failure ends answers, not the recording.
func (s *Service) keepIndex(ctx context.Context) {
	failed := func(err error) {
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("the index failed, recording goes on: %w; restart to build it anew", err)
			s.indexErr.Store(&err)
			s.log.Error("the index failed, recording goes on", "error", err)
		}
	}
	x, err := openIndex(s.journal, index.Options{
		FS: s.fs, Log: s.log, Cache: s.cache, Pause: s.leaveToReceiver, Damaged: s.damaged, RoomUntil: s.ctx.Done(), RoomEvery: s.roomEvery,
		ReclaimPatience: reclaimPatience, ObjectCache: s.objects,
	})
	if err != nil {
		failed(err)
		close(s.opened)
		return
	}
	s.index.Store(x)
	close(s.opened)
	s.work.Go(func() { s.keepHealing(ctx, x) })
	failed(s.follow(ctx, x))
}

// noRoomForIndex reports whether recording is paused and half of the room that it left is used up. Until then the index may catch up.
func (s *Service) noRoomForIndex() bool {
	p := s.rec.Paused()
	return p != nil && p.Free < p.Least/2
}

// leaveToReceiver waits while the recorder's buffer fills, and for a while after: a receiver that was behind once is at its
// limit, and what the index would take of the processor it would miss.
func (s *Service) leaveToReceiver(ctx context.Context) {
	const tick, calm = 2 * time.Millisecond, 5
	for quiet := calm; ; quiet++ {
		bytes, most := s.rec.Buffered()
		if bytes > most/receiverFirst || s.noRoomForIndex() {
			quiet = 0
		}
		if quiet >= calm {
			return
		}
		if pause.For(ctx, tick) != nil {
			return
		}
	}
}

// close leaves the directory as one at rest likes it: sealed, and nothing in the databases' logs.
func (s *Service) close() error {
	var err error
	if s.err == nil {
		err = errors.Join(s.journal.Seal(context.Background()), s.journal.Flush())
	}
	if x := s.index.Load(); x != nil {
		err = errors.Join(err, x.Close())
	}
	err = errors.Join(err, s.journal.Close())
	s.cache.Unref()
	return err
}

// Wait returns when the recording has ended; nil if ctx ended it and all that was received is durable.
func (s *Service) Wait() error {
	<-s.done
	return s.err
}

// Address is where others than the owner are answered; nil: nowhere.
func (s *Service) Address() net.Addr { return s.address }

// Done is closed when the recording has ended.
func (s *Service) Done() <-chan struct{} { return s.done }

// openPatience is how long a question waits for a recorder that is just opening its index.
const openPatience = 5 * time.Second

// Engine implements httpapi.Source.
func (s *Service) Engine() (*query.Engine, error) {
	select {
	case <-s.opened:
	case <-time.After(openPatience):
	}
	if err := s.indexErr.Load(); err != nil {
		return nil, *err
	}
	x := s.index.Load()
	if x == nil {
		return nil, errors.New("the recorder is just opening its index; ask again")
	}
	return &query.Engine{Journal: s.journal, Index: x, Live: s.rec.Connected, Tail: s.tail, Counted: &s.counted, Credits: &s.credits, Dir: s.dir}, nil
}

// Recorder implements httpapi.Source.
func (s *Service) Recorder() *query.RecorderStats {
	bytes, most := s.rec.Buffered()
	st := &query.RecorderStats{
		BufferBytes: bytes, BufferMaxBytes: most, UptimeSeconds: int64(time.Since(s.begun).Seconds()),
		MinFreeBytes: s.minFree, DiskFull: s.journal.WaitsForRoom(), NativeBytes: subscribe.NativeBytes(), Sockets: s.sockets(),
	}
	if p := s.rec.Paused(); p != nil {
		st.Paused = &query.PausedStats{Since: query.Time{Time: p.Since}, FreeBytes: p.Free}
	}
	for _, m := range s.masters {
		st.Masters = append(st.Masters, m.stats()...)
	}
	return st
}

// Rebuild implements httpapi.Source.
func (s *Service) Rebuild(ctx context.Context, progress func(applied, total uint64)) error {
	x := s.index.Load()
	if x == nil {
		return errors.New("the recorder is just opening its index; ask again")
	}
	if p := s.rec.Paused(); p != nil {
		return fmt.Errorf("%w: %d bytes are free, and a second index beside the old one needs some %d; free space first", recorder.ErrPaused, p.Free, x.Bytes())
	}
	return x.Rebuild(ctx, func(applied uint64) { progress(applied, s.journal.Durable()) })
}

// Status is what a status line shows.
type Status struct {
	Durable  uint64
	Events   uint64
	Messages uint64
	Applied  uint64
	Buffered int64
	Paused   *recorder.Pause // nil: it records
	Sockets  []SocketStatus
}

// SocketStatus is the state of one endpoint.
type SocketStatus struct {
	Endpoint  string
	Connected bool
	Trouble   string
}

// Status returns figures of the moment; it is cheap.
func (s *Service) Status() Status {
	j := s.journal.Durables()
	st := Status{Durable: j.Durable, Events: j.Totals.Events, Messages: j.Totals.Messages}
	st.Buffered, _ = s.rec.Buffered()
	st.Paused = s.rec.Paused()
	if x := s.index.Load(); x != nil {
		st.Applied = x.Applied()
	}
	for _, sub := range s.rec.Status() {
		st.Sockets = append(st.Sockets, SocketStatus{sub.Endpoint, sub.Connected, sub.LastError})
	}
	return st
}
