package mooncaketest

import (
	"fmt"
	"slices"
)

// What a master tells about memory and objects; made up, and equal for all.
const (
	objectBytes         = 1024 // of an object in memory
	diskObjectBytes     = 1 << 20
	segmentBase         = 0x100000000
	segmentBytes        = 64 << 30
	firstSegmentPort    = 17001
	diskEndpoint        = "127.0.0.1:17030"
	diskClientID        = "1-2"
	segmentIDStream     = 0x7365676d656e7473
	defaultSegmentCount = 2
)

// Segment is a piece of memory that a client lends to the master. Objects on the medium cpu lie in one.
type Segment struct {
	ID       string // "<u64>-<u64>": what identifies it; never used again after it was unmounted
	ClientID string // "<u64>-<u64>"
	Endpoint string // host:port, its name too; a segment mounted later may have the same

	used int64 // bytes
}

// segments are those of a store. Their ids depend on the lower half of the seed alone: clients survive a restart of the
// master, and mount the same segments again.
type segments struct {
	r       random
	all     []*Segment // by object.segment; nil: unmounted
	mounted []uint16
	next    int // of mounted, for the next object
}

func newSegments(seed uint64, n int) *segments {
	s := &segments{r: newRandom(seed&0xffffffff ^ segmentIDStream)}
	for range n {
		s.mount(fmt.Sprintf("127.0.0.1:%d", firstSegmentPort+len(s.all)))
	}
	return s
}

func (s *segments) mount(endpoint string) *Segment {
	id := func() string { return fmt.Sprintf("%d-%d", s.r.source.Uint64(), s.r.source.Uint64()) }
	segment := &Segment{ID: id(), ClientID: id(), Endpoint: endpoint}
	s.mounted = append(s.mounted, uint16(len(s.all)))
	s.all = append(s.all, segment)
	return segment
}

// allocate chooses the segment of an object that comes into memory, in turn.
func (s *segments) allocate(o *object) {
	if len(s.mounted) == 0 {
		s.mount(fmt.Sprintf("127.0.0.1:%d", firstSegmentPort+len(s.all)))
	}
	s.next++
	o.segment = s.mounted[s.next%len(s.mounted)]
	s.all[o.segment].used += objectBytes
}

func (s *segments) free(o *object) {
	if segment := s.all[o.segment]; segment != nil {
		segment.used -= objectBytes
	}
}

// Segments lists the segments that are mounted, in the order in which they were. Ones that were unmounted are gone.
func (s *Store) Segments() []Segment {
	out := []Segment{}
	for _, i := range s.segments.mounted {
		out = append(out, *s.segments.all[i])
	}
	return out
}

// unmount takes a segment away: what lay in it is not in memory any more, and no event says so. It returns the number of
// objects that lost their place in memory, -1 if no such segment is mounted.
func (s *Store) unmount(id string) int {
	at := slices.IndexFunc(s.segments.mounted, func(i uint16) bool { return s.segments.all[i].ID == id })
	if at < 0 {
		return -1
	}
	segment := s.segments.mounted[at]
	lost := 0
	for i := len(s.live) - 1; i >= 0; i-- { // from behind: a removal moves the last one to its place
		if o := s.live[i]; o.media&onCPU != 0 && o.segment == segment {
			s.take(o, onCPU)
			lost++
		}
	}
	s.segments.mounted = slices.Delete(s.segments.mounted, at, at+1)
	s.segments.all[segment] = nil
	s.silent += lost
	return lost
}
