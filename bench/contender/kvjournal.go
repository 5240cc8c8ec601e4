package contender

import (
	"context"
	"errors"

	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// kvSource is the name of the one source.
const kvSource = "bench"

// kvJournal is kvjournal's journal with the defaults of a recorder, filled as a recorder fills it: each message is judged.
type kvJournal struct {
	j      *journal.Journal
	source journal.Source
	feed   *recorder.Feed
	rec    capture.Record
	block  *journal.Block
	frames [][]byte
	seq    [8]byte
	lone   journal.Lone
}

func openKV(dir string) (Journal, error) {
	kv, err := newKV(dir, nil)
	if err != nil {
		return nil, err
	}
	return kv, nil
}

// newKV opens the journal; indexed is what the index knows of it.
func newKV(dir string, indexed journal.Known) (*kvJournal, error) {
	j, err := journal.Open(dir, nil, journal.Options{Indexed: indexed})
	if err != nil {
		return nil, err
	}
	kv := &kvJournal{j: j}
	if kv.source, err = j.EnsureSource(kvSource, nil, nil); err == nil {
		kv.feed, err = recorder.NewFeed(j, kv.source.ID)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return kv, nil
}

func (kv *kvJournal) Append(group []message.Message) error {
	g := kv.j.NewGroup()
	for i := range group {
		m := &group[i]
		kv.rec = capture.Record{Kind: capture.Message, Received: m.Received, Frames: m.Frames}
		if _, err := kv.feed.Add(g, &kv.rec, false); err != nil {
			return err
		}
	}
	kv.feed.Save(g)
	return g.Commit()
}

func (kv *kvJournal) Sync() error { return kv.j.Sync() }

func (kv *kvJournal) Last() (uint64, error) {
	r, err := kv.j.LastBatch(kv.source.ID, kv.j.Durable())
	return r.Seq, err
}

func (kv *kvJournal) ReadAll(f func(seq uint64, payload []byte) error) error {
	for at := uint64(0); ; at = kv.block.Last() {
		b, err := kv.j.NextBlock(kv.block, at)
		if errors.Is(err, journal.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		kv.block = b
		for i := range b.Len() {
			if b.First+uint64(i) <= at {
				continue
			}
			if kv.frames, err = b.Frames(i, kv.frames[:0], &kv.seq); err != nil {
				return err
			}
			if err := f(b.Header(i).Seq, kv.frames[2]); err != nil {
				return err
			}
		}
	}
}

func (kv *kvJournal) Get(seq uint64) ([]byte, error) {
	if err := kv.j.LoneBySeq(&kv.lone, kv.source.ID, 1, seq); err != nil {
		return nil, err
	}
	return kv.lone.Frames[2], nil
}

// Settle does what a recorder does when it ends.
func (kv *kvJournal) Settle() error {
	return errors.Join(kv.j.Seal(context.Background()), kv.j.Flush())
}

// Needed are the tables.
func (kv *kvJournal) Needed() uint64 { return kv.j.Stats().TableBytes }

func (kv *kvJournal) Close() error { return kv.j.Close() }

// openKVIndex opens the index as a recorder does: one that cannot be used is computed anew.
func openKVIndex(j *journal.Journal) (*index.Index, error) {
	x, err := index.Open(j, true, index.Options{})
	if errors.Is(err, index.ErrRebuild) {
		return index.Create(context.Background(), j, index.Options{}, nil)
	}
	return x, err
}
