package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Options of a backup and of a restore.
type Options struct {
	// FS holds all directories. nil: the operating system's.
	FS vfs.FS
	// Log takes what an operator should know. nil: nothing is said.
	Log *slog.Logger
	// Progress is told how far a step is. nil: nobody.
	Progress func(Progress)
	// Fatal is told when a restore's databases cannot be written any more. It must not return. nil: it is said, and the process ends.
	Fatal datadir.FatalFunc
}

// Progress is how far a step is: bytes where it copies, offsets where it indexes, records where it compares.
type Progress struct {
	Step  string `json:"step"`
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Fatal == nil {
		o.Fatal = func(message string) {
			fmt.Fprintf(os.Stderr, "kvjournal restore: writing failed: %s\nNothing was restored, the backup is as it was. Look at the disk (space, dmesg), then run it again.\n", message)
			os.Exit(1)
		}
	}
	return o
}

// Report is what a backup or a restore came to.
type Report struct {
	// Dir is what was made, From what it was made of.
	Dir  string `json:"dir"`
	From string `json:"from"`
	// Live: a recorder was writing meanwhile.
	Live bool `json:"live,omitempty"`
	// JournalID is that of the new directory; Origin, of a restored one, that of the backup.
	JournalID string `json:"journal_id"`
	Origin    string `json:"origin,omitempty"`
	// DurableOffset is the newest record in it, AppliedOffset how far its index is; Events and Messages count what it holds.
	DurableOffset uint64 `json:"durable_offset"`
	AppliedOffset uint64 `json:"applied_offset"`
	Events        uint64 `json:"events"`
	Messages      uint64 `json:"messages"`
	Sources       int    `json:"sources"`
	// Bytes of the files, of which Linked are shared with the directory that was copied.
	Bytes  uint64 `json:"bytes"`
	Linked uint64 `json:"linked_bytes"`
	// Compared are the records of the sample, and the events of them that were looked up in the index.
	Compared Compared `json:"compared"`
	TookMs   int64    `json:"took_ms"`

	format int // that its gate must name at least
}

// Compared counts what was compared with the source.
type Compared struct {
	Records int `json:"records"`
	Events  int `json:"events"`
}

// Facts are what backup.json says.
type Facts struct {
	// Backup is the version of this file.
	Backup        int       `json:"backup"`
	JournalID     string    `json:"journal_id"`
	DurableOffset uint64    `json:"durable_offset"`
	Messages      uint64    `json:"messages"`
	Events        uint64    `json:"events"`
	Created       time.Time `json:"created"`
	From          string    `json:"from"`
}

const factsVersion = 1

func factsOf(j *journal.Journal) Facts {
	st := j.Durables()
	return Facts{Backup: factsVersion, JournalID: j.ID().String(), DurableOffset: st.Durable, Messages: st.Totals.Messages, Events: st.Totals.Events}
}

// readFacts reads dir's backup.json; nil where dir is no backup.
func readFacts(fs vfs.FS, dir string) (*Facts, error) {
	path := fs.PathJoin(dir, datadir.BackupFile)
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var facts Facts
	if err := json.Unmarshal(b, &facts); err != nil || facts.Backup < 1 {
		return nil, fmt.Errorf("%s is damaged (%v): take another backup, or remove the file to restore what is there", path, err)
	}
	if facts.Backup > factsVersion {
		return nil, fmt.Errorf("%s: %w: version %d, this program reads %d; use the newer program", path, datadir.ErrNewer, facts.Backup, factsVersion)
	}
	return &facts, nil
}

// check compares a backup's facts with its journal.
func (f *Facts) check(j *journal.Journal) error {
	is := factsOf(j)
	is.Created, is.From, is.Backup = f.Created, f.From, f.Backup
	if is != *f {
		return fmt.Errorf("%s is damaged: backup.json says offset %d, %d messages, %d events of journal %s, and its journal holds offset %d, %d messages, %d events of journal %s; take another backup",
			j.Dir(), f.DurableOffset, f.Messages, f.Events, f.JournalID, is.DurableOffset, is.Messages, is.Events, is.JournalID)
	}
	return nil
}
