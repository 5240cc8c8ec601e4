package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// patience bounds how long a test waits for what must happen. It is not waited for otherwise.
const patience = 2 * time.Minute

// testDir is the data directory on a MemFS.
const testDir = "/data"

// rec is a record as the test knows it.
type rec struct {
	offset uint64
	header Header
	frames [][]byte
}

func (r *rec) batch() bool { return r.header.Kind == Message && !r.header.Duplicate }

func sameFrames(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// testOptions never write in the background unless the test asks for it.
func testOptions(fs vfs.FS) Options {
	return Options{
		FS: fs, NoSealer: true, HeadEvery: time.Hour, MemTableSize: 4 << 20, CacheSize: 1 << 20,
		Fatal: func(m string) { panic("the journal told Fatal: " + m) },
	}
}

func mustOpen(t testing.TB, o Options, knownTo uint64) *Journal {
	t.Helper()
	j, err := Open(testDir, nil, indexedTo(o, knownTo))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// indexedTo is o with an index that has applied all up to an offset; 0: none.
func indexedTo(o Options, offset uint64) Options {
	o.Indexed = append(slices.Clone(o.Indexed), Claim{Offset: offset})
	return o
}

func mustClose(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// within fails the test where f does not return.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not return", what)
	}
}

// stream makes up the records of several sources as a recorder appends them: seq rises inside an epoch, epochs rise, a
// duplicate stands right behind its original, clocks step back at times.
type stream struct {
	rng     *rand.Rand
	sources []*streamSource
	now     int64
	// steadyClock: no clock ever goes back.
	steadyClock bool
	// payload is the usual size of a message's payload, in bytes.
	payload int
}

type streamSource struct {
	id    uint32
	state continuity.State
	last  *rec // newest message
}

func newStream(t testing.TB, rng *rand.Rand, j *Journal, sources int) *stream {
	t.Helper()
	s := &stream{rng: rng, now: 1_700_000_000_000_000_000, payload: 100}
	for i := range sources {
		src, err := j.EnsureSource(fmt.Sprintf("source-%d", i), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.sources = append(s.sources, &streamSource{id: src.ID})
	}
	return s
}

func (s *stream) chance(percent int) bool { return s.rng.IntN(100) < percent }

func (s *stream) next() rec {
	src := s.sources[s.rng.IntN(len(s.sources))]
	s.now += s.rng.Int64N(1e6)
	r := rec{header: Header{Source: src.id, Received: s.now}}
	h, st := &r.header, &src.state
	st.Epoch = max(st.Epoch, 1)
	switch {
	case s.chance(6):
		h.Kind = []Kind{Connected, Disconnected, RecorderStarted, RecorderStopped}[s.rng.IntN(4)]
		h.Epoch, h.HasTime, h.Time = st.Epoch, st.HasTime, st.Time
		return r
	case src.last != nil && s.chance(6):
		h.Kind, h.HasSeq, h.Seq, h.Events = Message, src.last.header.HasSeq, src.last.header.Seq, src.last.header.Events
		h.Duplicate, h.Epoch, h.HasTime, h.Time = true, st.Epoch, st.HasTime, st.Time
		r.frames = src.last.frames
		return r
	}
	h.Kind = Message
	if s.chance(85) { // a time of its own
		if !st.HasTime {
			st.Time = 1000
		}
		st.HasTime = true
		st.Time += s.rng.Int64N(4)
		if !s.steadyClock && s.chance(8) {
			st.Time -= s.rng.Int64N(1 + []int64{5, 30, 200}[s.rng.IntN(3)])
		}
	}
	h.HasTime, h.Time = st.HasTime, st.Time
	payload := make([]byte, s.rng.IntN(2*s.payload+1))
	for i := range min(len(payload), 4<<10) {
		payload[i] = "abcdefgh"[s.rng.IntN(8)]
	}
	for n := 4 << 10; n < len(payload); n *= 2 {
		copy(payload[n:], payload[:n])
	}
	if s.chance(4) { // no seq
		h.Damage, h.Mark, h.MarkCause = event.SeqFrameSize, continuity.MarkBehind, continuity.Damaged
		r.frames = [][]byte{{}, payload[:len(payload)/2], payload}
	} else {
		if s.chance(3) {
			st.Epoch++
			st.Seq = uint64(s.rng.IntN(2))
			h.Gap = continuity.Gap{Cause: continuity.PublisherRestart, Epoch: st.Epoch}
			h.Mark, h.MarkCause = continuity.MarkBefore, continuity.PublisherRestart
		}
		st.Seq += 1 + uint64(s.rng.IntN(20)/18*5)
		h.HasSeq, h.Seq, h.Events = true, st.Seq, uint32(s.rng.IntN(65))
		h.Follows, h.Keyed, h.InWindow = s.chance(90), s.chance(50), s.chance(5)
		if s.chance(3) {
			h.Damage, h.Events = event.Cut, 0
		}
		seq := event.SeqFrame(st.Seq)
		r.frames = [][]byte{{}, seq[:], payload}
		if s.chance(3) {
			r.frames[0] = []byte("topic")
		}
	}
	h.Epoch = st.Epoch
	src.last = &r
	return r
}

// model is the naive journal: a list.
type model struct {
	recs []rec
	// positions as the newest group saved them.
	positions map[uint32]Position
}

func (m *model) last() uint64 {
	if len(m.recs) == 0 {
		return 0
	}
	return m.recs[len(m.recs)-1].offset
}

// appendGroup commits one group of n records of s and keeps them.
func (m *model) appendGroup(t testing.TB, j *Journal, s *stream, n int) {
	t.Helper()
	if err := m.tryAppend(j, s, n); err != nil {
		t.Fatal(err)
	}
}

func (m *model) tryAppend(j *Journal, s *stream, n int) error {
	g := j.NewGroup()
	for range n {
		r := s.next()
		r.offset = g.Add(&r.header, r.frames)
		m.recs = append(m.recs, r)
		if r.header.Kind == Message {
			s.byID(r.header.Source).last.offset = r.offset
		}
	}
	if m.positions == nil {
		m.positions = map[uint32]Position{}
	}
	for _, src := range s.sources {
		p := Position{State: src.state}
		if src.last != nil {
			p.Last = src.last.offset
		}
		m.positions[src.id] = p
		g.State(src.id, &p)
	}
	return g.Commit()
}

func (s *stream) byID(id uint32) *streamSource {
	for _, src := range s.sources {
		if src.id == id {
			return src
		}
	}
	return nil
}

// appendMany commits about n records in groups of random size, and waits for them.
func (m *model) appendMany(t testing.TB, j *Journal, s *stream, n, maxGroup int) {
	t.Helper()
	for end := len(m.recs) + n; len(m.recs) < end; {
		m.appendGroup(t, j, s, 1+s.rng.IntN(maxGroup))
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
}

// readAll returns all records by NextBlock.
func readAll(t testing.TB, j *Journal) []rec {
	t.Helper()
	var out []rec
	var b *Block
	for after := uint64(0); ; {
		var err error
		next, err := j.NextBlock(b, after)
		if err != nil {
			if after != j.Durable() {
				t.Fatalf("NextBlock(%d) fails before the end at %d: %v", after, j.Durable(), err)
			}
			return out
		}
		b = next
		for i := range b.Len() {
			offset := b.First + uint64(i)
			if offset <= after {
				continue
			}
			frames, err := b.Frames(i, nil, new([8]byte))
			if err != nil {
				t.Fatal(err)
			}
			r := rec{offset: offset, header: *b.Header(i)}
			for _, f := range frames {
				r.frames = append(r.frames, bytes.Clone(f))
			}
			out = append(out, r)
		}
		after = b.Last()
	}
}

func diffRecords(got, want []rec) error {
	for i := range min(len(got), len(want)) {
		g, w := &got[i], &want[i]
		if g.offset != w.offset {
			return fmt.Errorf("record %d: offset %d, want %d", i, g.offset, w.offset)
		}
		if g.header != w.header {
			return fmt.Errorf("offset %d: header\n%+v, want\n%+v", w.offset, g.header, w.header)
		}
		if !sameFrames(g.frames, w.frames) {
			return fmt.Errorf("offset %d: frames %q, want %q", w.offset, g.frames, w.frames)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d records, want %d", len(got), len(want))
	}
	return nil
}

func checkAll(t testing.TB, j *Journal, want []rec) {
	t.Helper()
	if err := diffRecords(readAll(t, j), want); err != nil {
		t.Fatal(err)
	}
}

// blockFirsts lists the first offsets of the blocks that are stored.
func blockFirsts(t testing.TB, j *Journal) (firsts []uint64) {
	t.Helper()
	if err := j.scan(keyBlock, func(k, _ []byte) error {
		firsts = append(firsts, binary.BigEndian.Uint64(k[1:]))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return firsts
}

// tree is a directory's content, by path.
func tree(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(string)
	walk = func(path string) {
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			out[path+"/"] = ""
			names, err := fs.List(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range names {
				walk(fs.PathJoin(path, n))
			}
			return
		}
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b := new(bytes.Buffer)
		if _, err := b.ReadFrom(f); err != nil {
			t.Fatal(err)
		}
		out[path] = b.String()
	}
	walk(dir)
	return out
}

func diffTrees(got, want map[string]string) error {
	for path, w := range want {
		if g, ok := got[path]; !ok {
			return fmt.Errorf("%s is gone", path)
		} else if g != w {
			return fmt.Errorf("%s changed, %d bytes before, %d now", path, len(w), len(g))
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			return fmt.Errorf("%s is new", path)
		}
	}
	return nil
}
