package index

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// hot keeps, for objects that were asked for, the newest event on each medium: what View.Media reads of the history. It is bounded, and
// filled by those who ask.
//
// # Why it never answers with what was
//
// What is kept of an object is so in a state S (fresh.go): all that S has of it is there. A view V may take it if it is so in V too:
// if no write between the two changed the object's history.
//
//   - S is not newer than V: its number is not above V's. An entry that a newer state made is passed over.
//   - A write names the objects whose history it changes, and they are forgotten (touch), before its rows can be seen, and behind fresh.begin.
//     So when V sees its rows, what older states had made of these objects is gone.
//   - Nothing is put back behind that: keep takes only what comes from the state that stands in fresh.now, with the shard locked. While a write
//     is under way none stands there; and if keep found S there before the write began, touch waits for the shard, and then forgets the object.
//   - While nobody asks, writes name nothing: used is set before keep looks at fresh.now, and a write looks at used behind fresh.begin, so one of
//     the two sees the other. Events that were taken up unnamed before that make the write forget all.
//
// Rows that are deleted (a prune) may be of any object: all is forgotten before each deletion. With another database (a rebuild) it begins
// empty. A clear, a mark, a reading and its exceptions change no row of an object's history: they are read, and compared, for each question.
// A reading's corrections are events of objects, and named as such, whatever their position.
//
// A view at a past moment may take an entry whose events all lie at or before the moment: they are the newest there too.
//
// # Memory
//
// Keys and evidence lie one behind the other in two generations of bytes a shard: entries move to the young one when they are asked for, and the
// old one is thrown away when the young one is full. An entry takes about 130 bytes and 40 for its place in a map.
type hot struct {
	fresh  *fresh
	seed   maphash.Seed
	used   atomic.Bool
	half   int // bytes of a generation of a shard
	shards [hotShards]hotShard
}

const (
	hotShards = 64
	// hotPlace is what an entry costs beside its bytes.
	hotPlace = 40
	// maxHot bounds an entry: objects with long keys or many media are read each time.
	maxHot = 2 << 10
)

type hotShard struct {
	mu         sync.Mutex
	young, old hotGeneration
}

// hotGeneration is some entries: number of the state, length of the key, key, length of the rest, and of each medium that has an event its bytes
// as in keys, the position, and the evidence without its group.
type hotGeneration struct {
	at    map[uint64]uint32 // by hash, where in bytes
	bytes []byte
}

// newHot keeps up to size bytes.
func newHot(f *fresh, size int64) *hot {
	return &hot{fresh: f, seed: maphash.MakeSeed(), half: int(size / 2 / hotShards)}
}

func (h *hot) hash(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

func (h *hot) shard(hash uint64) *hotShard { return &h.shards[hash%hotShards] }

// media fills dst, of which cpu and disk are the first, with what is kept of an object, if it is so at a position in a view of the
// state with that number. key is scope · object.
func (h *hot) media(dst []Medium, hash uint64, key []byte, number uint64, at Position) ([]Medium, bool) {
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.young.entry(hash)
	if !ok {
		if entry, ok = s.old.entry(hash); !ok {
			return dst, false
		}
	}
	c := varint.Cursor{B: entry}
	made := c.Uvarint()
	if made > number || string(c.Bytes(c.Uvarint())) != string(key) {
		return dst, false
	}
	first := len(dst) - 2
	for rest := (varint.Cursor{B: c.Bytes(c.Uvarint())}); len(rest.B) > 0; {
		n := mediumEnd(rest.B)
		medium := rest.B[:n]
		rest.B = rest.B[n:]
		p := Position{rest.Uvarint(), uint32(rest.Uvarint())}
		if at.Before(p) {
			clear(dst[first:])
			return append(dst[:first], Medium{Name: "cpu"}, Medium{Name: "disk"}), false
		}
		var e Evidence
		e, rest = cutEvidence(rest.B, p)
		dst = putMedium(dst, first, medium, e)
	}
	if _, young := s.young.at[hash]; !young {
		s.put(hash, entry[:len(entry)-len(c.B)], h.half)
	}
	return dst, true
}

// entry returns the bytes from the entry on.
func (g *hotGeneration) entry(hash uint64) ([]byte, bool) {
	at, ok := g.at[hash]
	if !ok {
		return nil, false
	}
	return g.bytes[at:], true
}

// keep keeps an object's newest events as they are in a state; the first two media are cpu and disk.
func (h *hot) keep(hash uint64, key []byte, media []Medium, of *state) {
	b := binary.AppendUvarint(make([]byte, 0, 256), of.number)
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	var rows [192]byte
	r := rows[:0]
	for i := range media {
		if m := &media[i]; m.Has {
			r = appendMedium(r, []byte(m.Name))
			r = appendLive(r, m.Newest.Position)
			r = appendEvidence(r, &m.Newest)
		}
	}
	b = append(binary.AppendUvarint(b, uint64(len(r))), r...)
	if len(b) > min(maxHot, h.half-hotPlace) {
		return
	}
	h.used.Store(true)
	s := h.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.fresh.now.Load() == of {
		s.put(hash, b, h.half)
	}
}

// put takes an entry into the young generation. entry may lie in the old one.
func (s *hotShard) put(hash uint64, entry []byte, half int) {
	if y := &s.young; len(y.bytes)+len(entry)+(len(y.at)+1)*hotPlace > half {
		// entry is copied before the generation that it may lie in is used again.
		entry = append([]byte(nil), entry...)
		s.young, s.old = hotGeneration{at: s.old.at, bytes: s.old.bytes[:0]}, s.young
		clear(s.young.at)
	}
	if s.young.at == nil {
		s.young.at = map[uint64]uint32{}
	}
	s.young.at[hash] = uint32(len(s.young.bytes))
	s.young.bytes = append(s.young.bytes, entry...)
}

// forget forgets the objects with these hashes.
func (h *hot) forget(hashes []uint64) {
	for _, hash := range hashes {
		s := h.shard(hash)
		s.mu.Lock()
		delete(s.young.at, hash)
		delete(s.old.at, hash)
		s.mu.Unlock()
	}
}

// reset forgets all.
func (h *hot) reset() {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.young, s.old = hotGeneration{}, hotGeneration{}
		s.mu.Unlock()
	}
}

// touched names the objects whose history a write changes.
type touched struct {
	hot     *hot // nil: nothing is kept
	hashes  []uint64
	unnamed bool // events were taken up while nobody asked
}

// add names an object: scope · object.
func (t *touched) add(key []byte) {
	switch {
	case t.hot == nil:
	case !t.hot.used.Load():
		t.unnamed = true
	default:
		t.hashes = append(t.hashes, t.hot.hash(key))
	}
}

// forget forgets the objects, behind fresh.begin and before the write.
func (t *touched) forget() {
	if t.hot != nil && t.hot.used.Load() {
		if t.unnamed {
			t.hot.reset()
		} else {
			t.hot.forget(t.hashes)
		}
	}
	t.hashes, t.unnamed = t.hashes[:0], false
}
