package pebblefile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kind is what a file of a database is for.
type Kind uint8

const (
	Other Kind = iota
	Table
	Log
	Manifest
	Options
	// Marker files are empty: their names tell.
	Marker
	// Temp files are the rest of a write that was cut short.
	Temp
)

var kindNames = [...]string{"other", "table", "log", "manifest", "options", "marker", "temp"}

func (k Kind) String() string { return kindNames[k] }

// File is one file of a database.
type File struct {
	Name string
	Kind Kind
	// Num is its number, of a Table, Log, Manifest and Options.
	Num  uint64
	Size int64
}

// KindOf tells by its name what a file is for, and its number.
func KindOf(name string) (Kind, uint64) {
	number := func(digits string) (uint64, bool) {
		n, err := strconv.ParseUint(digits, 10, 64)
		return n, err == nil
	}
	if strings.HasPrefix(name, "marker.") {
		return Marker, 0
	}
	if strings.HasSuffix(name, ".dbtmp") || strings.HasPrefix(name, "temporary.") {
		return Temp, 0
	}
	for _, k := range []struct {
		prefix, suffix string
		kind           Kind
	}{{"", ".sst", Table}, {"", ".log", Log}, {"MANIFEST-", "", Manifest}, {"OPTIONS-", "", Options}} {
		rest, ok := strings.CutPrefix(name, k.prefix)
		if !ok {
			continue
		}
		if rest, ok = strings.CutSuffix(rest, k.suffix); !ok {
			continue
		}
		if n, ok := number(rest); ok {
			return k.kind, n
		}
	}
	return Other, 0
}

// List lists the files of the database in dir by kind and number. A directory that is not there holds none.
func List(fs vfs.FS, dir string) ([]File, error) {
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	files := make([]File, 0, len(names))
	for _, name := range names {
		f := File{Name: name}
		f.Kind, f.Num = KindOf(name)
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // a writer removed it meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", fs.PathJoin(dir, name), err)
		}
		if info.IsDir() {
			continue
		}
		f.Size = info.Size()
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int {
		switch {
		case a.Kind != b.Kind:
			return int(a.Kind) - int(b.Kind)
		case a.Num != b.Num:
			if a.Num < b.Num {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return files, nil
}

// MarkerValue is the value of the newest marker of that name; ok is false where there is none.
func MarkerValue(files []File, name string) (value string, ok bool) {
	var newest uint64
	for _, f := range files {
		rest, is := strings.CutPrefix(f.Name, "marker."+name+".")
		if f.Kind != Marker || !is {
			continue
		}
		digits, v, cut := strings.Cut(rest, ".")
		n, err := strconv.ParseUint(digits, 10, 64)
		if cut && err == nil && (!ok || n > newest) {
			newest, value, ok = n, v, true
		}
	}
	return value, ok
}
