package index

import (
	"encoding/binary"
	"sync"
)

// hotRing keeps entries, of any length, one behind the other, and finds them by tags. Where its memory is full, a hand goes round; it passes
// once by what was asked for since it came by last, and what was not goes.
//
//	bytes   | entries of this round | free | entries of the round before |
//	        0                       write  hand                          len
//
// An entry begins with its length u16, of which the highest bit says that it was asked for, and its tag u32. What no place points at was forgotten,
// or written again, and goes when the hand comes by. Two entries of one tag are not kept: the later one stays.
type hotRing struct {
	mu          sync.Mutex
	places      []uint64 // open addressing, a power of two: tag u32, place in bytes + 1 u32; 0: free
	count       int      // places that are taken
	bytes       []byte
	write, hand int
}

const (
	hotHead  = 6       // bytes before an entry
	hotAsked = 1 << 15 // in its length
	hotLeast = 2 << 10
	// hotMercy is how many entries that were asked for one put passes by: what it takes is bounded.
	hotMercy = 64
)

// find is the index of a tag's place; ok is false where it has none, and index is where it would be.
func (r *hotRing) find(tag uint32) (index int, ok bool) {
	if len(r.places) == 0 {
		return 0, false
	}
	mask := len(r.places) - 1
	for i := int(tag) & mask; ; i = (i + 1) & mask {
		switch p := r.places[i]; {
		case p == 0:
			return i, false
		case uint32(p>>32) == tag:
			return i, true
		}
	}
}

// get returns what was put under a tag, and where it begins, valid while r.mu is held.
func (r *hotRing) get(tag uint32) (entry []byte, at int, ok bool) {
	i, ok := r.find(tag)
	if !ok {
		return nil, 0, false
	}
	at = r.at(i)
	return r.bytes[at+hotHead : at+r.length(at)], at, true
}

// hit tells that the entry that begins there was asked for.
func (r *hotRing) hit(at int) { r.bytes[at+1] |= hotAsked >> 8 }

// at is where the entry of a place begins.
func (r *hotRing) at(place int) int { return int(uint32(r.places[place])) - 1 }

func (r *hotRing) head(at int) uint16 { return binary.LittleEndian.Uint16(r.bytes[at:]) }

// length of the entry that begins there, with its head.
func (r *hotRing) length(at int) int { return int(r.head(at) &^ hotAsked) }

// put keeps an entry under a tag in at most size bytes, hotLeast or more. entry has hotHead bytes before it and takes at most a quarter of
// size.
func (r *hotRing) put(tag uint32, entry []byte, size int) {
	binary.LittleEndian.PutUint16(entry, uint16(len(entry)))
	binary.LittleEndian.PutUint32(entry[2:], tag)
	r.remove(tag) // it would be in the way of the hand
	for mercy := hotMercy; !r.fits(len(entry), size); {
		if r.turn(mercy > 0) {
			mercy--
		}
	}
	end := r.write + len(entry)
	if end > r.hand { // nothing of the round before is left
		if end > cap(r.bytes) {
			// In small steps: what is taken here is not there for the table.
			larger := make([]byte, r.write, min(max(end, cap(r.bytes)+size/16), size-8*len(r.places)))
			copy(larger, r.bytes)
			r.bytes = larger
		}
		r.bytes, r.hand = r.bytes[:end], end
	}
	copy(r.bytes[r.write:], entry)
	r.point(tag, r.write)
	r.write = end
}

// replace puts an entry in the place of the one of that tag, which begins there: over it where it fits.
func (r *hotRing) replace(tag uint32, at int, entry []byte, size int) {
	asked := r.head(at)&hotAsked != 0
	if n := r.length(at); len(entry) <= n {
		clear(r.bytes[at+copy(r.bytes[at+hotHead:at+n], entry[hotHead:])+hotHead : at+n])
		return
	}
	r.put(tag, entry, size)
	if i, ok := r.find(tag); ok && asked {
		r.hit(r.at(i))
	}
}

// fits reports whether an entry of n bytes can be written now. It makes the table larger where that is needed and there is room.
func (r *hotRing) fits(n, size int) bool {
	if (r.count+1)*4 > len(r.places)*3 {
		larger := max(64, 2*len(r.places))
		if larger*8+max(cap(r.bytes), r.write+n) > size {
			return false
		}
		old := r.places
		r.places = make([]uint64, larger)
		for _, p := range old {
			if p != 0 {
				i, _ := r.find(uint32(p >> 32))
				r.places[i] = p
			}
		}
	}
	return r.write+n <= r.hand || r.hand == len(r.bytes) && r.write+n+len(r.places)*8 <= size
}

// turn moves the hand by an entry, which goes if nobody asked for it, or without mercy; at the end a round begins. It reports whether it
// passed by.
func (r *hotRing) turn(mercy bool) bool {
	if r.hand == len(r.bytes) {
		r.bytes = r.bytes[:r.write]
		r.write, r.hand = 0, 0
		return false
	}
	at, n := r.hand, r.length(r.hand)
	r.hand += n
	tag := binary.LittleEndian.Uint32(r.bytes[at+2:])
	place, ok := r.find(tag)
	switch {
	case !ok || r.at(place) != at:
	case mercy && r.head(at)&hotAsked != 0:
		copy(r.bytes[r.write:], r.bytes[at:at+n])
		binary.LittleEndian.PutUint16(r.bytes[r.write:], uint16(n))
		r.places[place] = uint64(tag)<<32 | uint64(r.write+1)
		r.write += n
		return true
	default:
		r.vacate(place)
	}
	return false
}

// point has a tag that has no place be found at a place of bytes. There is room in the table.
func (r *hotRing) point(tag uint32, at int) {
	i, _ := r.find(tag)
	r.places[i] = uint64(tag)<<32 | uint64(at+1)
	r.count++
}

// remove forgets what was put under a tag.
func (r *hotRing) remove(tag uint32) {
	if i, ok := r.find(tag); ok {
		r.vacate(i)
	}
}

// vacate frees a place, and moves those behind it that are sought from before it.
func (r *hotRing) vacate(i int) {
	mask := len(r.places) - 1
	for j := (i + 1) & mask; r.places[j] != 0; j = (j + 1) & mask {
		home := int(r.places[j]>>32) & mask
		if (j-home)&mask >= (j-i)&mask {
			r.places[i] = r.places[j]
			i = j
		}
	}
	r.places[i] = 0
	r.count--
}

// reset forgets all, and gives the memory back.
func (r *hotRing) reset() {
	r.places, r.count, r.bytes, r.write, r.hand = nil, 0, nil, 0, 0
}
