package index

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/pebblefile"
)

// l0Begin is twice the number of L0 sublevels from which on they are compacted into the base level, l0Stop that at which Pebble holds writes up, and
// l0Deep that at which a second compaction may run (doc.go: Under load).
const (
	l0Begin = 8
	l0Stop  = 200
	l0Deep  = 64
)

// openPebble opens a database for writing. Pebble begins to compact as soon as it is opened, and then Open waits for the
// first compaction to end, to look for obsolete files: with a second's or a minute's work left over from a crash, a restart would take
// that long. So none begins before it is open; the next flush lets them.
func openPebble(path string, o Options) (*pebble.DB, error) {
	if err := readable(path, o); err != nil {
		return nil, err
	}
	guard := datadir.NewGuard(o.FS, datadir.GuardOptions{Database: "index", Fatal: o.Fatal, Until: o.RoomUntil, Every: o.RoomEvery, Log: o.Log})
	open := func(ready bool) (*pebble.DB, error) {
		var compacting atomic.Bool
		compacting.Store(ready)
		p := o.writable(guard, &compacting)
		db, err := datadir.OpenPebble(path, p)
		compacting.Store(true)
		return db, err
	}
	db, err := open(false)
	if err == nil && db.Metrics().Levels[0].Sublevels >= l0Stop-8 {
		// So much is left over that writes would wait for a compaction that only a flush lets begin.
		if err := db.Close(); err != nil {
			return nil, err
		}
		db, err = open(true)
	}
	return db, err
}

// readable is an error where the manifest has no end that Pebble would have written. Pebble takes what it cannot read for the end, and
// what it then does not know of the newest rows makes answers wrong, and compactions panic. A loss of power in the middle of a write
// leaves a manifest so too, seldom: the index is computed anew then, which is safe.
func readable(path string, o Options) error {
	files, err := pebblefile.List(o.FS, path)
	if err != nil {
		return err
	}
	manifest, tail, beheaded, err := pebblefile.ReadManifest(context.Background(), o.FS, path, files)
	if err == nil && manifest != "" && (!tail.Clean || beheaded) { // without one it is a new database, or Pebble says what is wrong
		err = fmt.Errorf("%s cannot be read behind its first %d bytes", manifest, tail.End)
	}
	return err
}

// writable are the options of a database that compacts as soon as compacting is set.
func (o Options) writable(fs vfs.FS, compacting *atomic.Bool) *pebble.Options {
	p := o.pebble(fs, false)
	p.CompactionConcurrencyRange = func() (lower, upper int) {
		if !compacting.Load() {
			return 0, 1 // Pebble divides by the upper bound
		}
		if o.deep != nil && o.deep.Load() {
			return 2, 2
		}
		return 1, 2
	}
	// Nothing adds to the lower bound.
	p.Experimental.L0CompactionConcurrency = 1 << 20
	p.Experimental.CompactionDebtConcurrency = 1 << 60
	p.Experimental.CompactionGarbageFractionForMaxConcurrency = func() float64 { return 0 }
	return p
}

// written are the options that may stand in the database's OPTIONS file.
func (o Options) written() (out []*pebble.Options) {
	for _, ready := range []bool{false, true} {
		var compacting atomic.Bool
		compacting.Store(ready)
		for _, size := range []int64{o.CacheSize, journal.SharedCache} {
			for _, deep := range []bool{false, true} {
				o.deep = &atomic.Bool{}
				o.deep.Store(deep)
				p := o.writable(o.FS, &compacting)
				p.Cache, p.CacheSize = nil, size
				out = append(out, p)
				old := p.Clone() // as the first programs wrote it
				old.L0CompactionThreshold, old.Experimental.TombstoneDenseCompactionThreshold = 4, 0.1
				out = append(out, old)
			}
		}
	}
	return out
}

// DefaultObjectCache is Options.ObjectCache where none is given, in bytes.
const DefaultObjectCache = 64 << 20

// DefaultBeat is Options.Beat where none is given.
const DefaultBeat = 50 * time.Millisecond

// Options of an index. The zero value is right for a program that records.
type Options struct {
	// FS holds all files. nil: the operating system's.
	FS vfs.FS
	// Cache is shared with other databases of the process. nil: one of CacheSize of its own.
	Cache *pebble.Cache
	// CacheSize in bytes, used where Cache is nil. 0: 64 MiB. More makes lookups of a large hot set faster.
	CacheSize int64
	// ObjectCache bounds what is kept in memory of objects that were asked for, in bytes: about 110 an object on two media, and 20 to
	// 25 for each older event of those that were asked for at a past moment (24 events at most). It is filled by those
	// who ask, and the next question about the same object reads nothing (hot.go). 0: 64 MiB, 650,000 objects; for a hot set of a million 112 MiB
	// are right. Below 0: nothing is kept.
	ObjectCache int64
	// MemTableSize in bytes; three may be held at once. 0: 32 MiB. It is the strongest lever on write speed, and
	// the memory.
	MemTableSize uint64
	// FlushEvents and FlushEvery bound what must be replayed from the journal after a crash. 0: 150,000 events, 30 s.
	FlushEvents int
	FlushEvery  time.Duration
	// Beat is the least time between two times that Follow applies what is new, unless Hurry is called: writing more rows at once costs less for
	// each (doc.go), and an answer is behind the journal by at most that. What comes behind a silence is applied at once. 0: DefaultBeat;
	// negative: none.
	Beat time.Duration
	// CheckpointEvents is how many events lie between two places up to which the journal can be pruned; part of the format, so that all who
	// open an index give the same. 0: CheckpointEvents. Tests make it small.
	CheckpointEvents uint64
	// Passing: the index is open for a question only, on an FS that keeps writes to itself: nothing is compacted.
	Passing bool
	// Pause is called before each block and may wait: so the materializer leaves the processor to a receiver that is
	// behind. nil: never waits.
	Pause func(ctx context.Context)
	// ReclaimPatience bounds how long a prune waits for compactions that give space back: while records arrive without a pause, those that keep
	// the database in shape go first, and may be all there is time for. What is not compacted by then is later. 0: it waits for ever.
	ReclaimPatience time.Duration
	// Damaged is told when a part of the index cannot be read; it must not wait. nil: nobody is.
	Damaged func(error)
	// Log takes what an operator should know. nil: nothing is said.
	Log *slog.Logger
	// Fatal is told when the storage fails in a way after which nothing can be written. nil: datadir.Exit.
	Fatal datadir.FatalFunc
	// RoomUntil and RoomEvery: as for a journal.
	RoomUntil <-chan struct{}
	RoomEvery time.Duration

	background *datadir.Background // of this index, in all its databases
	deep       *atomic.Bool        // many tables of L0 lie on top of each other, in the newest database
	bulk       *bulk               // of a database that is computed anew: takes its history
	renew      uint64              // see renewEvents; tests make it small
	runBytes   int                 // see runBytes; tests make it small
	tableBytes int                 // see tableBytes; tests make it small
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheSize == 0 {
		o.CacheSize = 64 << 20
	}
	if o.ObjectCache == 0 {
		o.ObjectCache = DefaultObjectCache
	}
	if o.MemTableSize == 0 {
		o.MemTableSize = 32 << 20
	}
	if o.FlushEvents == 0 {
		o.FlushEvents = 150_000
	}
	if o.CheckpointEvents == 0 {
		o.CheckpointEvents = CheckpointEvents
	}
	if o.Beat == 0 {
		o.Beat = DefaultBeat
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.renew == 0 {
		o.renew = renewEvents
	}
	if o.runBytes == 0 {
		o.runBytes = runBytes
	}
	if o.tableBytes == 0 {
		o.tableBytes = tableBytes
	}
	if o.deep == nil {
		o.deep = &atomic.Bool{}
	}
	if o.background == nil {
		o.background = datadir.NewBackground(o.Log, "index")
	}
	return o
}

func (o Options) pebble(fs vfs.FS, readOnly bool) *pebble.Options {
	p := &pebble.Options{
		FS:                          datadir.Unlocked(fs),
		ReadOnly:                    readOnly,
		DisableWAL:                  true,
		Cache:                       o.Cache,
		Comparer:                    comparer(),
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		MemTableSize:                o.MemTableSize,
		MemTableStopWritesThreshold: 3,
		Logger:                      datadir.Logger(o.Log, "index", o.Fatal),
		L0CompactionThreshold:       l0Begin,
		L0StopWritesThreshold:       l0Stop,
		LBaseMaxBytes:               128 << 20,
		MaxOpenFiles:                datadir.MaxOpenFiles(),
		BytesPerSync:                1 << 20,
		FlushDelayDeleteRange:       10 * time.Second,
		DisableAutomaticCompactions: o.Passing,
	}
	if o.Cache == nil {
		p.CacheSize = o.CacheSize
	}
	for i := range p.Levels {
		// What is in the upper levels is soon written again.
		p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
		if i >= len(p.Levels)-2 {
			p.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.SnappyCompression }
		}
		p.Levels[i].FilterPolicy = pebble.NoFilterPolicy
		if i >= len(p.Levels)-3 {
			p.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		}
		p.Levels[i].BlockSize = 16 << 10
	}
	for i := range p.TargetFileSizes {
		p.TargetFileSizes[i] = 8 << 20
	}
	// By default Pebble compacts each table with many deletions as soon as it has nothing else to do. All of L0 have, of live rows, so each flush
	// would write the base level anew (doc.go: What compactions cost).
	p.Experimental.TombstoneDenseCompactionThreshold = -1
	// By default Pebble keeps the values of all but the first key with a prefix apart. Those of a history are read with it.
	p.Experimental.SpanPolicyFunc = func([]byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{DisableValueSeparationBySuffix: true}, nil, nil
	}
	p.EventListener = &pebble.EventListener{BackgroundError: o.background.Met, DataCorruption: func(info pebble.DataCorruptionInfo) {
		o.Log.Error("the index is damaged", "path", info.Path, "details", info.Details.Error())
		if o.Damaged != nil {
			o.Damaged(fmt.Errorf("%s: %w", info.Path, info.Details))
		}
	}}
	return p
}
