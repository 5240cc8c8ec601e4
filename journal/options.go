package journal

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// l0Stop is the number of L0 sublevels at which Pebble holds writes up. Tables of the journal hardly overlap, so it is met only where
// compactions fail again and again, as on a bad sector: recording goes on then.
const l0Stop = 1000

// SharedCache is the size of the cache that a writer's two databases share, in bytes.
const SharedCache = 64 << 20

// Options of a journal. The zero value is right for a program that records.
type Options struct {
	// FS holds all files. nil: the operating system's.
	FS vfs.FS
	// ReadOnly opens a directory at rest; nothing is written.
	ReadOnly bool
	// Unfinished: the directory is being made, and has no gate before it is whole.
	Unfinished bool
	// Cache is shared with other databases of the process. nil: one of CacheSize of its own.
	Cache *pebble.Cache
	// CacheSize in bytes, used where Cache is nil. 0: 16 MiB. More makes repeated reads of the past faster.
	CacheSize int64
	// MessageCache is how many bytes of memory hold opened blocks, of which single records were read: about a fifth of what their records take
	// as received. 0: 32 MiB, 350,000 to 550,000 events. A record whose block is in it is read 5 to 25 times faster (BenchmarkGet). It is only
	// taken as records are read alone. Below 0: none.
	MessageCache int
	// MemTableSize in bytes; two may be held at once, and the write-ahead log is about four times that at most.
	// 0: 32 MiB. More means fewer, larger tables.
	MemTableSize uint64
	// BlockRaw is how many raw bytes of messages a block holds before the next one begins. 0: 256 KiB. More compresses
	// a little better and costs a reader of one message more.
	BlockRaw int
	// HeadEvery is the longest time between a commit and the head file's telling of it. 0: 1 s.
	HeadEvery time.Duration
	// Indexed is what lies beside the journal and may know of more of it: its index. It counts where it is of this journal.
	Indexed Known
	// NoSealer leaves small blocks as they are until Seal is called.
	NoSealer bool
	// Committed, if not nil, is told of each commit that became durable: how many records it had, and how long that took. It must not wait.
	Committed func(records int, took time.Duration)
	// Log takes what an operator should know. nil: nothing is said.
	Log *slog.Logger
	// Fatal is told when the storage fails in a way after which nothing can be written. nil: datadir.Exit.
	Fatal datadir.FatalFunc
	// RoomUntil: a commit on a full disk waits for room until this is closed: the process wants to end. Then, or where it is nil, a
	// full disk is told to Fatal. It is tried again every RoomEvery; 0: 1 s.
	RoomUntil <-chan struct{}
	RoomEvery time.Duration
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CacheSize == 0 {
		o.CacheSize = 16 << 20
	}
	if o.MessageCache == 0 {
		o.MessageCache = 32 << 20
	}
	if o.MemTableSize == 0 {
		o.MemTableSize = 32 << 20
	}
	if o.BlockRaw == 0 {
		o.BlockRaw = 256 << 10
	}
	if o.BlockRaw > maxBlockRaw {
		o.BlockRaw = maxBlockRaw
	}
	if o.HeadEvery == 0 {
		o.HeadEvery = time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// guard is the filesystem that the database is given.
func (o Options) guard() *datadir.Guard {
	return datadir.NewGuard(o.FS, datadir.GuardOptions{Database: "journal", Fatal: o.Fatal, Until: o.RoomUntil, Every: o.RoomEvery, Log: o.Log})
}

func (o Options) pebble(fs vfs.FS) *pebble.Options {
	p := &pebble.Options{
		FS:                          datadir.Unlocked(fs),
		ReadOnly:                    o.ReadOnly,
		Cache:                       o.Cache,
		FormatMajorVersion:          pebble.FormatTableFormatV6, // at least 20: a flipped bit in the log is an error, not a shorter log
		MemTableSize:                o.MemTableSize,
		MemTableStopWritesThreshold: 2,
		Logger:                      datadir.Logger(o.Log, "journal", o.Fatal),
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       l0Stop,
		MaxOpenFiles:                datadir.MaxOpenFiles(),
		BytesPerSync:                1 << 20,
		WALBytesPerSync:             1 << 20,
		FlushDelayDeleteRange:       10 * time.Second,
	}
	if o.Cache == nil {
		p.CacheSize = o.CacheSize
	}
	// Blocks are compressed already.
	p.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	for i := range p.TargetFileSizes {
		p.TargetFileSizes[i] = 32 << 20
	}
	corrupt := func(info pebble.DataCorruptionInfo) {
		o.Log.Error("the journal is damaged; recording goes on, "+WhatToDo, "path", info.Path, "details", info.Details.Error())
	}
	p.EventListener = &pebble.EventListener{DataCorruption: corrupt, BackgroundError: datadir.NewBackground(o.Log, "journal").Met}
	return p
}
