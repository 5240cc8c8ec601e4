package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
)

// ErrImported: the capture is in the source already.
var ErrImported = errors.New("this capture was imported into this source before")

// importGroup is how many raw bytes are committed together.
const importGroup = 4 << 20

// ImportOptions of Import.
type ImportOptions struct {
	// FS; nil: the operating system's.
	FS vfs.FS
	// Again imports a capture that was imported before once more, behind what the source has.
	Again bool
	// MaxEvents bounds the events of one message that is applied: see Feed.LimitEvents.
	MaxEvents int
	// Progress is told how many records of the total are in the journal.
	Progress func(done, total int)

	group int // raw bytes committed together; 0: importGroup
}

// Import appends a capture to a source. The whole file is read and checked first: a damaged one changes nothing. An
// import that was interrupted goes on where it stopped when it is asked for again.
func Import(ctx context.Context, j *journal.Journal, source journal.Source, path string, o ImportOptions) (journal.Import, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.group == 0 {
		o.group = importGroup
	}
	sum, total, err := examine(ctx, o.FS, path)
	if err != nil {
		return journal.Import{}, err
	}
	if total == 0 {
		return journal.Import{}, fmt.Errorf("%s: the capture holds no record", path)
	}
	im := journal.Import{SHA256: sum, Path: path, Total: total}
	switch before, err := j.ImportOf(source.ID, sum); {
	case errors.Is(err, journal.ErrNotFound):
	case err != nil:
		return journal.Import{}, err
	case before.Records < before.Total:
		im = before
	case !o.Again:
		return before, fmt.Errorf("%s: %w: %q has it at offsets %d to %d, imported from %s; --again imports it once more, --source NAME into another source",
			path, ErrImported, source.Name, before.First, before.Last, before.Path)
	}
	feed, err := NewFeed(j, source.ID)
	if err != nil {
		return im, err
	}
	feed.LimitEvents(o.MaxEvents)
	if im.Records == 0 || feed.pos.Last > im.Last { // a beginning, or messages came between the interruption and now
		feed.Begin(continuity.ConnectionBroken)
	}
	err = appendCapture(ctx, j, source, feed, &im, path, o)
	return im, err
}

// examine reads the whole capture: whether it is sound, how many records it has, and the SHA-256 of its content.
func examine(ctx context.Context, fs vfs.FS, path string) (sum string, total int, err error) {
	hash := sha256.New()
	w, err := capture.NewWriter(hash)
	if err != nil {
		return "", 0, err
	}
	err = eachRecord(ctx, fs, path, func(rec *capture.Record) error {
		total++
		return w.Write(*rec)
	})
	if err == nil {
		err = w.Flush()
	}
	return hex.EncodeToString(hash.Sum(nil)), total, err
}

func eachRecord(ctx context.Context, fs vfs.FS, path string, f func(*capture.Record) error) error {
	file, err := capture.Open(fs, path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer file.Close()
	var rec capture.Record
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := file.Next(&rec)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w; nothing was imported", path, n+1, err)
		}
		if err := f(&rec); err != nil {
			return err
		}
	}
}

func appendCapture(ctx context.Context, j *journal.Journal, source journal.Source, feed *Feed, im *journal.Import, path string, o ImportOptions) error {
	g := j.NewGroup()
	commit := func() error {
		if g.Len() == 0 {
			return g.Commit()
		}
		feed.Save(g)
		g.Import(source.ID, *im)
		if err := g.Commit(); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(im.Records, im.Total)
		}
		g = j.NewGroup()
		return nil
	}
	skip := im.Records
	var kept [2][][]byte // the feed compares a message with the one before it
	err := eachRecord(ctx, o.FS, path, func(rec *capture.Record) error {
		if skip > 0 {
			skip--
			return nil
		}
		own := capture.Record{Kind: rec.Kind, Received: rec.Received}
		if rec.Kind == capture.Message { // the others must not take the place of the last message
			kept[0], kept[1] = capture.CopyFrames(kept[1], rec.Frames), kept[0]
			own.Frames = kept[0]
		}
		offset, err := feed.Add(g, &own, false)
		if err != nil {
			return err
		}
		if im.Records == 0 {
			im.First = offset
		}
		im.Records, im.Last = im.Records+1, offset
		if g.Raw() < o.group {
			return nil
		}
		if err := commit(); err != nil {
			return err
		}
		return ctx.Err()
	})
	// What was read before an interruption is kept: the import goes on there.
	if cerr := commit(); err == nil {
		err = cerr
	}
	if serr := j.Sync(); err == nil {
		err = serr
	}
	return err
}
