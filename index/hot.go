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
// What is kept lies in the rings of 64 shards (hotring.go), without pointers. An entry takes about 90 bytes, and 8 for each place of a table that is
// three eighths to three quarters full. When the memory is full, those go that were not asked for since the hand of their ring came by last: a
// set that fits is kept whole, in whatever order it is asked for, and of a larger one as much as fits. BenchmarkHotSet, a million objects on cpu
// and disk whose keys are hashes, asked for at random:
//
//	64 MiB, the default     652,000 objects kept    65 % of the questions find theirs
//	96 MiB                  932,000                 93 %
//	112 MiB               1,000,000                100 %
type hot struct {
	fresh  *fresh
	seed   maphash.Seed
	used   atomic.Bool
	size   int // bytes of a shard
	shards [hotShards]hotRing
	scopes hotScopes
}

const (
	hotShards = 64
	// maxHot bounds an entry: objects with long keys or many media are read each time.
	maxHot = 1 << 10
)

// newHot keeps up to size bytes.
func newHot(f *fresh, size int64) *hot {
	return &hot{fresh: f, seed: maphash.MakeSeed(), size: int(size / hotShards)}
}

func (h *hot) hash(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

// ring is where an object is kept, and its tag there.
func (h *hot) ring(hash uint64) (*hotRing, uint32) {
	return &h.shards[hash%hotShards], uint32(hash >> 32)
}

// media fills dst, of which cpu and disk are the last two, with what is kept of an object, if it is so at a position in a view of the
// state with that number. key is scope · object, and the scope's length is given.
func (h *hot) media(dst []Medium, hash uint64, key []byte, scope int, number uint64, at Position) ([]Medium, bool) {
	named := h.scopes.number(key[:scope])
	s, tag := h.ring(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, begins, ok := s.get(tag)
	if !ok {
		return dst, false
	}
	c := varint.Cursor{B: entry}
	if made := c.Uvarint(); made > number || !sameObject(&c, key, scope, named) {
		return dst, false
	}
	first := len(dst) - 2
	for len(c.B) > 0 {
		n := mediumEnd(c.B)
		medium := c.B[:n]
		c.B = c.B[n:]
		p := Position{c.Uvarint(), uint32(c.Uvarint())}
		if at.Before(p) {
			clear(dst[first:])
			return append(dst[:first], Medium{Name: "cpu"}, Medium{Name: "disk"}), false
		}
		var e Evidence
		e, c = cutEvidence(c.B, p)
		dst = putMedium(dst, first, medium, e)
	}
	s.hit(begins)
	return dst, true
}

// sameObject reports whether c stands at the name of the object with that key, and moves it behind. A name is the number of its scope, 0: the
// scope is written out, then the length of the rest, and the rest.
func sameObject(c *varint.Cursor, key []byte, scope int, named uint64) bool {
	if number := c.Uvarint(); number != 0 {
		if number != named {
			return false
		}
		key = key[scope:]
	}
	return string(c.Bytes(c.Uvarint())) == string(key)
}

// keep keeps an object's newest events as they are in a state; the first two media are cpu and disk. key and scope as in media. The entry
// is the number of the state, the object's name, and of each medium that has an event its bytes as in keys, the position, and the evidence
// without its group.
func (h *hot) keep(hash uint64, key []byte, scope int, media []Medium, of *state) {
	var room [512]byte
	b := binary.AppendUvarint(room[:hotHead], of.number)
	number := h.scopes.add(key[:scope])
	if b = binary.AppendUvarint(b, number); number != 0 {
		key = key[scope:]
	}
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	for i := range media {
		if m := &media[i]; m.Has {
			b = appendMedium(b, []byte(m.Name))
			b = appendLive(b, m.Newest.Position)
			b = appendEvidence(b, &m.Newest)
		}
	}
	if h.size < hotLeast || len(b) > min(maxHot, h.size/4) {
		return
	}
	h.used.Store(true)
	s, tag := h.ring(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.fresh.now.Load() == of {
		s.put(tag, b, h.size)
	}
}

// forget forgets the objects with these hashes.
func (h *hot) forget(hashes []uint64) {
	for _, hash := range hashes {
		s, tag := h.ring(hash)
		s.mu.Lock()
		s.remove(tag)
		s.mu.Unlock()
	}
}

// reset forgets all.
func (h *hot) reset() {
	for i := range h.shards {
		s := &h.shards[i]
		s.mu.Lock()
		s.reset()
		s.mu.Unlock()
	}
}

// hotScopes gives scopes numbers, so that entries need not name them: 1, 2, …, for as long as the index is open. Scopes beyond a few have none.
type hotScopes struct {
	mu    sync.Mutex
	names atomic.Pointer[[]string] // never changed
}

const maxHotScopes = 32

// number is a scope's, 0 where it has none.
func (s *hotScopes) number(name []byte) uint64 {
	if names := s.names.Load(); names != nil {
		for i, n := range *names {
			if n == string(name) {
				return uint64(i + 1)
			}
		}
	}
	return 0
}

// add gives a scope a number, if there is one left.
func (s *hotScopes) add(name []byte) uint64 {
	if n := s.number(name); n != 0 || len(name) > maxName {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.number(name); n != 0 {
		return n
	}
	var names []string
	if old := s.names.Load(); old != nil {
		names = *old
	}
	if len(names) == maxHotScopes {
		return 0
	}
	names = append(names[:len(names):len(names)], string(name))
	s.names.Store(&names)
	return uint64(len(names))
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
