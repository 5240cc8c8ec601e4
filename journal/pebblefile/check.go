package pebblefile

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Trouble is what is wrong with a file.
type Trouble struct {
	File File
	// At is the place in the file, -1: not known.
	At   int64
	What string
	// Maybe: a crash while the file was written leaves it so too.
	Maybe bool
	// Idle: the database does not go by the file any more.
	Idle bool
}

// Files are those of one database, to be checked.
type Files struct {
	FS  vfs.FS
	Dir string
	// Options are those that the database is opened with, Written what may stand in its OPTIONS file.
	Options *pebble.Options
	Written []*pebble.Options
	// Live are the numbers of the tables that the database goes by; nil: not known.
	Live map[uint64]bool
	// Logged: the database has write-ahead logs.
	Logged bool
}

// Check reads every file to its end and compares it with its checksums. progress is told how many bytes were read of each.
func (d Files) Check(ctx context.Context, files []File, progress func(bytes int64), report func(Trouble)) error {
	newest := uint64(0) // OPTIONS
	logs, live := 0, map[uint64]bool{}
	for _, f := range files {
		switch f.Kind {
		case Options:
			newest = max(newest, f.Num)
		case Log:
			logs++
		case Table:
			live[f.Num] = true
		}
	}
	manifest, named := MarkerValue(files, "manifest")
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := d.FS.PathJoin(d.Dir, f.Name)
		t := Trouble{File: f, At: -1}
		var err error
		switch f.Kind {
		case Table:
			t.Idle = d.Live != nil && !d.Live[f.Num]
			if cerr := d.table(path); cerr != nil {
				t.What = cerr.Error()
			}
		case Log:
			var tail Tail
			tail, err = ReadLog(ctx, d.FS, path, f.Num, nil)
			tail.Clean = tail.Err == nil // a log that is used again has what it held before behind its end
			t.endsSo(tail)
		case Manifest:
			t.Idle = named && f.Name != manifest
			var tail Tail
			tail, err = CheckManifest(ctx, d.FS, path)
			t.endsSo(tail)
		case Options:
			t.Idle = f.Num != newest
			t.What, err = d.options(path)
			t.Maybe = true
		case Temp:
			t.What, t.Idle = "a write that was cut short", true
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if t.What != "" {
			report(t)
		}
		if progress != nil {
			progress(f.Size)
		}
	}
	for num := range d.Live {
		if !live[num] {
			report(Trouble{File: File{Name: fmt.Sprintf("%06d.sst", num), Kind: Table, Num: num}, At: -1, What: "it is gone"})
		}
	}
	switch {
	case newest == 0:
		report(Trouble{File: File{Name: "OPTIONS-*", Kind: Options}, At: -1, What: "it is gone", Maybe: true})
	case d.Logged && logs == 0:
		report(Trouble{File: File{Name: "*.log", Kind: Log}, At: -1, What: "there is no write-ahead log", Maybe: true})
	}
	return nil
}

func (d Files) table(path string) error {
	t, err := OpenTable(d.FS, path, d.Options)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Check()
}

// endsSo takes how a log or a manifest ends.
func (t *Trouble) endsSo(tail Tail) {
	switch {
	case tail.Err != nil:
		t.At, t.What = tail.End, fmt.Sprintf("cannot be read at byte %d, which had been synced: %v", tail.End, tail.Err)
	case !tail.Clean:
		t.At, t.What, t.Maybe = tail.End, fmt.Sprintf("cannot be read behind byte %d", tail.End), true
	}
}

// options compares an OPTIONS file, which has no checksum, with what this program writes.
func (d Files) options(path string) (what string, err error) {
	f, err := d.FS.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	const most = 1 << 20
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return "", err
	}
	return compareOptions(string(b), d.Written), nil
}

// compareOptions says what of an OPTIONS file none of the options would write; empty: nothing.
func compareOptions(got string, written []*pebble.Options) string {
	var want [][]string
	for _, o := range written {
		o = o.Clone()
		o.EnsureDefaults()
		want = append(want, strings.Split(o.String(), "\n"))
	}
	for i, line := range strings.Split(got, "\n") {
		known := false
		for _, w := range want {
			known = known || i < len(w) && w[i] == line
		}
		if !known {
			return fmt.Sprintf("line %d is %.80q, not as this program writes it", i+1, line)
		}
	}
	for _, w := range want {
		if n := strings.Count(got, "\n"); n == len(w)-1 {
			return ""
		}
	}
	return "it is cut short"
}
