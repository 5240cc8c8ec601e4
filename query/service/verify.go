package service

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// Verified sums a verification up.
type Verified struct {
	// Sound: nothing that was recorded is lost or wrong, and the index is what the journal makes.
	Sound   bool            `json:"sound"`
	Damaged int             `json:"damaged"`
	Notes   int             `json:"notes"`
	Journal journal.Checked `json:"journal"`
	Index   index.Checked   `json:"index"`
}

// VerifyOptions of Verify.
type VerifyOptions struct {
	// FS; nil: the operating system's.
	FS vfs.FS
	// Scratch is a directory for the index that is computed anew to be compared, as large as the index; it is made, and removed. Empty: one
	// under the operating system's temporary directory.
	Scratch string
	// NoCompare leaves that out.
	NoCompare bool
	// Report is given each finding; Progress is told how far it is, in bytes of the journal, then in offsets.
	Report          func(journal.Finding)
	JournalProgress func(done, total uint64)
	IndexProgress   func(done, total uint64)

	journal journal.Options
}

// Verify reads all of a directory at rest and changes nothing in it. It returns a *LiveError where a writer runs.
func Verify(ctx context.Context, dir string, o VerifyOptions) (v Verified, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if _, err := o.FS.Stat(dir); err != nil {
		return v, datadir.Check(o.FS, dir)
	}
	a, err := shared(ctx, o.FS, dir)
	if err != nil {
		return v, err
	}
	defer a.lock.Release()
	report := func(f journal.Finding) {
		if f.Severity == journal.Damage {
			v.Damaged++
		} else {
			v.Notes++
		}
		o.Report(f)
	}
	io := index.Options{FS: o.FS}
	jo := o.journal
	jo.FS, jo.Indexed = o.FS, index.KnownTo(dir, io)
	j, checked, err := journal.Check(ctx, dir, jo, report, o.JournalProgress)
	v.Journal = checked
	if err != nil {
		return v, a.disturbed(err)
	}
	if j != nil {
		defer j.Close()
	}
	scratch, remove, err := o.scratch()
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	compareWith := j
	if o.NoCompare || v.Damaged > 0 { // else each hole of the journal shows again as rows that differ
		compareWith = nil
	}
	if v.Index, err = index.Check(ctx, dir, compareWith, scratch, io, report, o.IndexProgress); err != nil {
		return v, a.disturbed(err)
	}
	v.Sound = v.Damaged == 0
	return v, a.Undisturbed()
}

// scratch is where the index is computed, and removes it.
func (o *VerifyOptions) scratch() (path string, remove func() error, err error) {
	if o.Scratch != "" {
		return o.Scratch, func() error { return o.FS.RemoveAll(o.Scratch) }, nil
	}
	if path, err = os.MkdirTemp("", "kvjournal-verify-"); err != nil {
		return "", nil, fmt.Errorf("a place to compute the index in: %w", err)
	}
	return path, func() error { return os.RemoveAll(path) }, nil
}

// disturbed is err, or, where a writer came, that.
func (a *AtRest) disturbed(err error) error {
	if live := a.Undisturbed(); live != nil {
		return live
	}
	return err
}
