package contender

import (
	"errors"

	"github.com/mattn/go-sqlite3"
	"modernc.org/sqlite"

	"github.com/kvjournal/kvjournal/bench/message"
)

// ErrNotHere: the contender has no way to do it.
var ErrNotHere = errors.New("it has no way to do that")

// Journal is a contender that is open. One goroutine uses it.
type Journal interface {
	// Append adds a group, as one transaction or one sync.
	Append(group []message.Message) error
	// Sync waits until all that was appended is durable.
	Sync() error
	// Last is the seq of the newest message.
	Last() (uint64, error)
	// ReadAll calls f with every payload in order. It is valid until f returns. A contender that keeps no payloads gives nil, once an event.
	ReadAll(f func(seq uint64, payload []byte) error) error
	// Get returns a payload, valid until the next call; ErrNotHere where that would be a scan.
	Get(seq uint64) ([]byte, error)
	// Settle brings it into the state in which it lies at rest.
	Settle() error
	Close() error
}

// Sized is a journal that can tell what of its files is data that it needs: kvjournal has logs to be used again while it is open.
type Sized interface {
	// Needed is in bytes.
	Needed() uint64
}

// Kind is a contender.
type Kind struct {
	Name string
	// Durability says what of an acknowledged group survives a crash of the process, and of the machine.
	Durability string
	// KeepsPayload: the bytes come back as they were received.
	KeepsPayload bool
	// Open opens the journal in dir, a new one where it is empty.
	Open func(dir string) (Journal, error)
	// OpenPlaces opens it with all that questions need; nil where it answers none.
	OpenPlaces func(dir string) (Places, error)
}

// Of the two drivers the one in C writes faster and the one in Go answers faster: both take part.
var (
	cgoSQLite = &sqlite3.SQLiteDriver{}
	goSQLite  = &sqlite.Driver{}
)

const (
	survivesAll     = "synced: survives a crash of the process and of the machine"
	survivesProcess = "not synced: survives a crash of the process, not of the machine"
)

// All are the contenders, kvjournal first.
func All() []Kind {
	return []Kind{
		{"kvjournal", survivesAll, true, openKV, openKVPlaces},
		{"file", survivesAll, true, openFile(false), nil},
		{"file-zstd", survivesAll, true, openFile(true), nil},
		{"raft-wal", survivesAll, true, openRaftWAL, nil},
		{"nats", survivesProcess + "; synced every 2 min", true, openNATS(false), nil},
		{"nats-sync", survivesAll, true, openNATS(true), nil},
		{"sqlite", survivesAll, true, openSQLite(cgoSQLite), openSQLitePlaces(cgoSQLite)},
		{"sqlite-go", survivesAll, true, openSQLite(goSQLite), openSQLitePlaces(goSQLite)},
		{"jsonl", survivesProcess, false, openJSONL(false), nil},
		{"jsonl-sync", survivesAll, false, openJSONL(true), nil},
	}
}
