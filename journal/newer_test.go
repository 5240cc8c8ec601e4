package journal

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// built is a block of one record as a newer program may write it.
func built(t *testing.T, h *Header, frames [][]byte, change func(body []byte)) []byte {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var b builder
	b.reset(1)
	b.add(h, frames)
	stored := b.appendBlock(nil, c)
	body := stored[:len(stored)-4]
	change(body)
	return binary.LittleEndian.AppendUint32(body, blockChecksum(1, body))
}

// What a newer program wrote into a block is refused by its own cause, and is no damage.
func TestNewerBlocks(t *testing.T) {
	same := func([]byte) {}
	message := Header{Kind: Message, Source: 1, HasSeq: true, Seq: 7}
	frames := [][]byte{{}, {0, 0, 0, 0, 0, 0, 0, 7}, []byte("payload")}
	with := func(change func(*Header)) Header {
		h := message
		change(&h)
		return h
	}
	for what, c := range map[string]struct {
		h      Header
		change func([]byte)
		says   string
	}{
		"block version": {message, func(b []byte) { b[0] = blockVersion + 1 }, "block of version 2"},
		"block flags":   {message, func(b []byte) { b[1] |= 0x80 }, "flags 0x80"},
		"kind":          {with(func(h *Header) { h.Kind = 200 }), same, "kind 200"},
		"damage":        {with(func(h *Header) { h.Damage = 99 }), same, "damage, 99"},
		"mark":          {with(func(h *Header) { h.Mark = 9 }), same, "mark of kind 9"},
		"mark's cause":  {with(func(h *Header) { h.Mark, h.MarkCause = continuity.MarkBefore, 77 }), same, "77"},
		"gap's cause":   {with(func(h *Header) { h.Gap.Cause = 78 }), same, "78"},
		"lost":          {with(func(h *Header) { h.Gap.Cause, h.Gap.Lost = continuity.Transport, 5 }), same, "lost events of kind 5"},
	} {
		c2, err := newCodec()
		if err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		err = (&Block{}).decode(1, built(t, &c.h, frames, c.change), c2)
		if !errors.Is(err, datadir.ErrNewer) || errors.As(err, &corrupt) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "offset 1") {
			t.Errorf("%s: %v", what, err)
		}
		c2.close()
	}
	// The flags of what is rare stand in the table.
	var w tableWriter
	h := with(func(h *Header) { h.Damage = event.Cut })
	w.add(&h, true, frames, 7)
	w.cols[colRare][0] |= 0x80
	var unknown *newerRecord
	if _, err := decodeTable(nil, w.appendTo(nil), 1, 7); !errors.As(err, &unknown) {
		t.Errorf("an unknown flag of what is rare: %v", err)
	}
	if err := (&Block{}).decode(1, built(t, &message, frames, same), mustCodec(t)); err != nil {
		t.Errorf("a block of this program: %v", err)
	}
}

func mustCodec(t *testing.T) *codec {
	t.Helper()
	c, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// A journal whose newest block, or a source's state, was written by a newer program does not open, and keeps it.
func TestNewerJournalDoesNotOpen(t *testing.T) {
	fs := vfs.NewMem()
	j := mustOpen(t, testOptions(fs), 0)
	s := newStream(t, testkit.RandomSource(t), j, 1)
	g := j.NewGroup()
	for range 5 {
		r := s.next()
		g.Add(&r.header, r.frames)
	}
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	last := j.Durable()
	h := Header{Kind: 200, Source: 1}
	var b builder
	b.reset(last + 1)
	b.add(&h, nil)
	put := func(key, value []byte) {
		t.Helper()
		o := testOptions(fs).withDefaults()
		db, err := pebble.Open(fs.PathJoin(testDir, "journal"), o.pebble(o.FS))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Set(key, value, pebble.Sync), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	put(sourceKey(keyState, 1), append(binary.BigEndian.AppendUint64(nil, 0), 0xff, 0, 0, 0, 0, 0))
	j = mustOpen(t, testOptions(fs), 0)
	if _, err := j.Position(1); !errors.Is(err, datadir.ErrNewer) {
		t.Errorf("a newer state of a source: %v", err)
	}
	mustClose(t, j)
	put(blockKey(last+1), b.appendBlock(nil, mustCodec(t)))
	for range 2 {
		if _, err := Open(testDir, nil, testOptions(fs)); !errors.Is(err, datadir.ErrNewer) {
			t.Fatalf("a newer block is the newest: %v", err)
		}
		if _, err := OpenReadOnly(testDir, testOptions(fs)); !errors.Is(err, datadir.ErrNewer) {
			t.Fatalf("read only: %v", err)
		}
	}
}
