package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/datadir"
)

// The two databases of a data directory, and what else is copied (journal/datadir draws them).
const (
	journalFolder = "journal"
	indexFolder   = "index"
	headFile      = "head"
)

// copier copies databases, whose files lie in one directory each.
type copier struct {
	fs vfs.FS
	// link: tables may be shared with the original.
	link           bool
	progress       func(Progress)
	total          uint64 // bytes to copy, for the progress
	linked, copied uint64
	buf            []byte
}

// immutable reports whether a file is never written to again: a table.
func immutable(name string) bool { return strings.HasSuffix(name, ".sst") }

// files lists a database's files that matter; none where there is no such database.
func files(fs vfs.FS, dir string) ([]string, uint64, error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", dir, err)
	}
	var out []string
	var bytes uint64
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return nil, 0, fmt.Errorf("reading %s: %w", dir, err)
		}
		if info.IsDir() || name == "LOCK" {
			continue
		}
		out = append(out, name)
		bytes += uint64(info.Size())
	}
	return out, bytes, nil
}

// database copies the database in from to the new directory to, and syncs it.
func (c *copier) database(ctx context.Context, from, to string) error {
	names, _, err := files(c.fs, from)
	if err != nil || names == nil {
		return err
	}
	if err := datadir.MakePrivate(c.fs, to); err != nil {
		return fmt.Errorf("making %s: %w", to, err)
	}
	for _, name := range names {
		if err := c.file(ctx, c.fs.PathJoin(from, name), c.fs.PathJoin(to, name)); err != nil {
			return err
		}
	}
	return datadir.SyncDir(c.fs, to)
}

// file links the file, or copies it and syncs the copy.
func (c *copier) file(ctx context.Context, from, to string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.link && immutable(from) {
		if err := c.fs.Link(from, to); err == nil {
			info, err := c.fs.Stat(to)
			if err != nil {
				return fmt.Errorf("linking %s: %w", from, err)
			}
			c.linked += uint64(info.Size())
			return nil
		}
	}
	if err := c.bytes(ctx, from, to); err != nil {
		return fmt.Errorf("copying %s to %s: %w", from, to, err)
	}
	return nil
}

func (c *copier) bytes(ctx context.Context, from, to string) (err error) {
	in, err := c.fs.Open(from, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := datadir.Private(c.fs).Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if c.buf == nil {
		c.buf = make([]byte, 1<<20)
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(c.buf)
		if n > 0 {
			if _, err := out.Write(c.buf[:n]); err != nil {
				return err
			}
			c.copied += uint64(n)
			c.progress(Progress{Step: "copying", Done: c.copied, Total: max(c.total, c.copied)})
		}
		if errors.Is(err, io.EOF) {
			return out.Sync()
		}
		if err != nil {
			return err
		}
	}
}

// linkable reports whether a file of dir can have a second name in to.
func linkable(fs vfs.FS, dir, to string) bool {
	probe := fs.PathJoin(to, "probe")
	if err := fs.Link(fs.PathJoin(dir, "KVJOURNAL"), probe); err != nil {
		return false
	}
	return fs.Remove(probe) == nil
}
