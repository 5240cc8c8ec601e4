package index

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/kvjournal/kvjournal/journal/varint"
)

// hot keeps, for objects that were asked for, the newest event on each medium: what View.Media reads of the history, also that there is none. Of
// objects that were asked for at a moment before their newest event it keeps all events, if they are few. It is bounded, filled by
// those who ask, and kept up by what is written: an object that changes all the time is found like any other.
//
// # Why it never answers with what was
//
// What is kept of an object is so in a state S (fresh.go): all that S has of it is there. A view V may take it if it is so in V too:
// if no write between the two changed the object's history.
//
//   - S is not newer than V: its number is not above V's. An entry that a newer state made is passed over.
//   - A write brings what is kept of the objects that it is about up to what its rows say (carry), or forgets them, before its rows can be seen,
//     and behind fresh.begin. What it brings up has the number of the next state: a view that may have been opened before the write's end passes
//     it over, and until that end no state gets that number. So when V sees the rows, nothing is left of what older states had made of these objects.
//   - Nothing is put back behind that: keep takes only what comes from the state that stands in fresh.still, with the shard locked. While a write
//     is under way none stands there; and if keep found S there before the write began, carry waits for the shard, and then finds the object.
//   - While nobody asks, a write looks at no object: used is set before keep looks at fresh.still, and a write looks at used behind fresh.begin, so one
//     of the two sees the other.
//   - A write that fails forgets all.
//
// An event is the newest of its object and medium if its position is: a reading's corrections, which lie behind newer events, change nothing
// then. Rows that are deleted (a prune) may be of any object: all is forgotten before each deletion. With another database (a rebuild) it
// begins empty. A clear, a mark, a reading and its exceptions change no row of an object's history: they are read, and compared, for each question.
//
// A view at a past moment may take an entry whose events all lie at or before the moment: they are the newest there too. Where the entry is whole, so
// that it has all events of the object in its state, it answers for every moment. A write tells the newest of an object and medium alone, not
// those before it: so of a whole entry carry leaves what any other would have, the newest on each medium. An object that changes is read
// again when its past is asked for; those at rest, which is most of them, are not.
//
// # Memory
//
// What is kept lies in the rings of 64 shards (hotring.go), without pointers. An entry takes about 90 bytes, and 8 for each place of a table that is
// three eighths to three quarters full; a whole one takes 20 to 25 more for each event that is not the newest.
// When the memory is full, those go that were not asked for since the hand of their ring came by last: a
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
	// hotFill stands behind the last medium of an entry that was written over a longer one. No medium begins so.
	hotFill = 0
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
	made, whole := cutMade(&c)
	if made > number || !sameObject(&c, key, scope, named) {
		return dst, false
	}
	first := len(dst) - 2
	var had []byte // the medium that was put last
	for {
		medium, p, rest := cutHot(c)
		if medium == nil {
			break
		}
		newer := at.Before(p)
		if newer && !whole {
			clear(dst[first:])
			return append(dst[:first], Medium{Name: "cpu"}, Medium{Name: "disk"}), false
		}
		var e Evidence
		e, c = cutEvidence(rest.B, p)
		if !newer && !bytes.Equal(medium, had) {
			dst, had = putMedium(dst, first, medium, e), medium
		}
	}
	s.hit(begins)
	return dst, true
}

// appendMade is the number of the state that an entry is of, and whether it is whole, in one.
func appendMade(b []byte, number uint64, whole bool) []byte {
	return binary.AppendUvarint(b, number<<1|uint64(bit(whole, 1)))
}

func cutMade(c *varint.Cursor) (number uint64, whole bool) {
	made := c.Uvarint()
	return made >> 1, made&1 != 0
}

// appendHot appends what follows an event's medium in an entry.
func appendHot(b []byte, e *Evidence) []byte { return appendEvidence(appendLive(b, e.Position), e) }

// cutHot reads the medium that c stands at, nil where there is none more, and its position; the evidence follows.
func cutHot(c varint.Cursor) (medium []byte, p Position, rest varint.Cursor) {
	if len(c.B) == 0 || c.B[0] == hotFill {
		return nil, p, c
	}
	n := mediumEnd(c.B)
	medium, c.B = c.B[:n], c.B[n:]
	p = Position{c.Uvarint(), uint32(c.Uvarint())}
	return medium, p, c
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

// keep keeps an object's newest events as they are in a state; the first two media are cpu and disk. key and scope as in media.
func (h *hot) keep(hash uint64, key []byte, scope int, media []Medium, of *state) {
	var room [maxHot]byte
	events := room[:0]
	for i := range media {
		if m := &media[i]; m.Has {
			events = appendHot(appendMedium(events, []byte(m.Name)), &m.Newest)
		}
	}
	h.keepEvents(hash, key, scope, events, false, of)
}

// keepEvents keeps events of an object as they are in a state: all of them, if whole, in the order of media and from the newest back, else the newest of
// each medium. The entry is the number of the state, doubled, and one if it is whole; the object's name; and of each event the bytes of its medium as in
// keys, the position, and the evidence without its group. hotFill follows where it was written over a longer one.
func (h *hot) keepEvents(hash uint64, key []byte, scope int, events []byte, whole bool, of *state) {
	if h.size < hotLeast {
		return
	}
	var room [512]byte
	b := appendMade(room[:hotHead], of.number, whole)
	number := h.scopes.add(key[:scope])
	if b = binary.AppendUvarint(b, number); number != 0 {
		key = key[scope:]
	}
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	b = append(b, events...)
	if len(b) > min(maxHot, h.size/4) {
		return
	}
	h.used.Store(true)
	s, tag := h.ring(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.fresh.still.Load() == of {
		s.put(tag, b, h.size)
	}
}

// carry brings what is kept of an object up to an event that a write is about to make seen: key and scope as in media, the medium as in keys,
// the evidence as in rows. next is the number that the next state will have. What it leaves is not whole: the write may have older events too.
func (h *hot) carry(key []byte, scope int, medium []byte, p Position, evidence []byte, next uint64) {
	s, tag := h.ring(h.hash(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, begins, ok := s.get(tag)
	if !ok {
		return
	}
	c := varint.Cursor{B: entry}
	cutMade(&c)
	name := c.B
	if !sameObject(&c, key, scope, h.scopes.number(key[:scope])) {
		return // events of the object that has the tag will come by themselves
	}
	var room [hotHead + maxHot]byte
	b := appendMade(room[:hotHead], next, false)
	b = append(b, name[:len(name)-len(c.B)]...)
	placed := false // the media stand in the order of their bytes
	place := func() {
		_, group := cutEvidence(evidence, p)
		b = appendLive(append(b, medium...), p)
		b = append(b, evidence[:len(evidence)-len(group.B)]...)
		placed = true
	}
	var before []byte
	for {
		m, had, rest := cutHot(c)
		if m == nil {
			break
		}
		_, end := cutEvidence(rest.B, had)
		if bytes.Equal(m, before) { // an older event of it, which media would not look at
			c = end
			continue
		}
		before = m
		order := bytes.Compare(m, medium)
		if order > 0 && !placed {
			place()
		}
		if order != 0 || p.Before(had) {
			b = append(b, c.B[:len(c.B)-len(end.B)]...)
			placed = placed || order == 0
		}
		c = end
	}
	if !placed {
		place()
	}
	if len(b) > min(maxHot, h.size/4) {
		s.remove(tag)
		return
	}
	s.replace(tag, begins, b, h.size)
}

// forget forgets an object.
func (h *hot) forget(key []byte) {
	s, tag := h.ring(h.hash(key))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(tag)
}

// reset forgets all, where anything is kept: h may be nil.
func (h *hot) reset() {
	if h == nil {
		return
	}
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

// touched are objects whose history a write changes, which are forgotten: those of rows that went into the batch before the last ones. The objects
// of the last rows are carried.
type touched struct {
	keys []byte // scope · object, one behind the other
	ends []int
}

func (t *touched) add(key []byte) {
	t.keys = append(t.keys, key...)
	t.ends = append(t.ends, len(t.keys))
}

func (t *touched) reset() { t.keys, t.ends = t.keys[:0], t.ends[:0] }

// write brings what is kept up to what a write is about to make seen. It comes behind fresh.begin, which told next, and before the write.
func (h *hot) write(t *touched, rows *eventRows, next uint64) {
	if !h.used.Load() {
		return
	}
	begin := 0
	for _, end := range t.ends {
		h.forget(t.keys[begin:end])
		begin = end
	}
	for _, row := range rows.newest {
		object, scope, medium := rows.cut(row)
		if p, ok := rows.position(row); ok {
			h.carry(object, scope, medium, p, rows.evidence(row), next)
		}
	}
}
