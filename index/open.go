package index

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/datadir"
)

// identity is what an index says of itself: the format of its rows, and its journal.
func identity(j *journal.Journal) []byte {
	return append(binary.BigEndian.AppendUint32(nil, formatVersion), idBytes(j)...)
}

// openDB opens the database at path and checks that it fits the journal.
func openDB(ctx context.Context, path string, j *journal.Journal, o Options) (*pebble.DB, *applier, error) {
	if err := datadir.MakePrivate(o.FS, path); err != nil {
		return nil, nil, fmt.Errorf("making the index: %w: %w", err, ErrRebuild) // a file lies in its place
	}
	db, err := openPebble(path, o)
	if datadir.Passes(err) { // nothing is wrong with the index
		return nil, nil, fmt.Errorf("opening %s: %w", path, err)
	}
	if err != nil {
		if what := newerDatabase(err.Error()); what != "" {
			return nil, nil, newerIndex(path, what)
		}
		return nil, nil, fmt.Errorf("opening %s: %w: %w", path, err, ErrRebuild)
	}
	a, err := check(ctx, db, path, j, o)
	if err != nil {
		db.Close()
		return nil, nil, err
	}
	return db, a, nil
}

// check compares the index with the journal; a fresh database is given the journal's baseline and id.
func check(ctx context.Context, db *pebble.DB, path string, j *journal.Journal, o Options) (*applier, error) {
	want := identity(j)
	got, err := get(db, []byte{keyJournal})
	if errors.Is(err, pebble.ErrNotFound) {
		if err := begin(ctx, db, path, j, o); err != nil {
			return nil, err
		}
		if err := db.Set([]byte{keyJournal}, want, pebble.NoSync); err != nil {
			return nil, err
		}
		return newApplier(db, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRebuild)
	}
	if err := newerRows(folder, got); err != nil {
		return nil, err
	}
	if string(got) != string(want) {
		if len(got) == len(want) && string(got[:4]) == string(want[:4]) {
			return nil, fmt.Errorf("it belongs to another journal: %w", ErrRebuild)
		}
		return nil, fmt.Errorf("it has another format: %w", ErrRebuild)
	}
	applied, err := readApplied(db)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRebuild)
	}
	if h := j.Horizon(); applied < h.Offset {
		return nil, fmt.Errorf("it ends at offset %d, and the journal begins at %d since it was pruned: %w", applied, h.Offset, ErrRebuild)
	}
	if applied > 0 {
		if _, err := j.Record(applied); errors.Is(err, datadir.ErrNewer) {
			return nil, err
		} else if err != nil {
			return nil, fmt.Errorf("it knows offset %d, which the journal has not (%v): %w", applied, err, ErrRebuild)
		}
	}
	a, err := newApplier(db, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrRebuild)
	}
	if h := j.Horizon(); a.horizon > h.Offset {
		return nil, fmt.Errorf("it begins at offset %d, and the journal at %d: %w", a.horizon, h.Offset, ErrRebuild)
	}
	return a, nil
}

func idBytes(j *journal.Journal) []byte {
	id := j.ID()
	return id[:]
}

func get(db pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := db.Get(key)
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return append([]byte(nil), v...), nil
}

func readApplied(db pebble.Reader) (uint64, error) {
	v, err := get(db, []byte{keyApplied})
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, errEvidence
	}
	return binary.BigEndian.Uint64(v), nil
}

func readSources(db pebble.Reader) (map[uint32]*SourceState, error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{keyState}, UpperBound: []byte{keyState + 1}})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	out := map[uint32]*SourceState{}
	for ok := it.First(); ok; ok = it.Next() {
		s := &SourceState{}
		if len(it.Key()) != 5 || json.Unmarshal(it.Value(), s) != nil {
			return nil, errEvidence
		}
		out[binary.BigEndian.Uint32(it.Key()[1:])] = s
	}
	return out, it.Error()
}
