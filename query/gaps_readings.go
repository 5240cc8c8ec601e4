package query

import (
	"bytes"
	"math"
	"slices"

	"github.com/kvjournal/kvjournal/index"
)

// doubtReadings are the readings of a scope by the last position that counts, the oldest first. nil: none.
type doubtReadings struct {
	list []index.Reading
	// first are, of each, the first position behind its h.
	first []int
	// covered are the positions behind which what the newest reading says is sure: no mark lies behind it, and the master tells its
	// changes, or the position lies within the reading.
	covered []int
	// exceptions: some of them have exceptions.
	exceptions bool
}

func (d *doubts) readings(v *index.View, s *index.Scope) (*doubtReadings, error) {
	r := &doubtReadings{}
	err := v.Readings(s, index.Position{}, d.to(), func(one *index.Reading) error {
		r.list = append(r.list, *one)
		r.exceptions = r.exceptions || one.Exceptions > 0
		return nil
	})
	if err != nil || len(r.list) == 0 {
		return nil, err
	}
	slices.Reverse(r.list)
	for i := range r.list {
		r.first = append(r.first, d.first(r.list[i].Position.Offset))
	}
	for i := range r.list {
		one, end := &r.list[i], len(d.at)
		if i+1 < len(r.list) {
			end = r.first[i+1]
		}
		end = min(end, d.sureBehind(r.first[i], end, one.Position, d.flagged[one.Epoch], one.Through))
		for n := r.first[i]; n < end; n++ {
			r.covered = append(r.covered, n)
		}
	}
	return r, nil
}

// sureBehind is the first position from i to j behind which evidence at p is not sure, j where there is none. silent: of a master that
// changes things without an event, so that it is sure up to the offset through only, 0: nowhere.
func (d *doubts) sureBehind(i, j int, p index.Position, silent bool, through uint64) int {
	k := d.doubted(i, j, p)
	if silent {
		k = min(k, max(i, d.first(through+1)))
	}
	if silent && through == 0 {
		k = i
	}
	return k
}

// behind is the number of the first reading at or behind a position.
func (r *doubtReadings) behind(p index.Position) int {
	n, _ := slices.BinarySearchFunc(r.list, p, func(one index.Reading, p index.Position) int { return one.Position.Compare(p) })
	return n
}

func (r *doubtReadings) newest() *index.Reading { return &r.list[len(r.list)-1] }

// beyond reports whether the newest reading goes on behind a position.
func (r *doubtReadings) beyond(p index.Position) bool {
	return r != nil && p.Before(index.Behind(r.newest().Through))
}

// saidOf is what readings say of one object.
type saidOf struct {
	// none: no reading says anything. excepted are those that do not, by position.
	none     bool
	excepted []index.Position
	// base is the newest that did, while the object was held.
	base  index.Position
	sayer *index.Sayer
	of    *index.View
}

// object begins another object.
func (s *saidOf) object(v *index.View, scope *doubtScope, key []byte) error {
	r := scope.readings
	s.none, s.excepted, s.base = r == nil || bytes.IndexByte(key, '\n') >= 0, s.excepted[:0], index.Position{}
	if s.none || !r.exceptions {
		return nil
	}
	if s.of != v {
		s.of, s.sayer = v, v.Sayer()
	}
	o := index.Object{Source: scope.Source, Backend: scope.Backend, Tenant: scope.Tenant, Key: key}
	return s.sayer.Exceptions(&o, func(p index.Position) { s.excepted = append(s.excepted, p) })
}

// sureUntil counts where the object, which some medium holds, is sure behind the positions i to j; next and touches as of until.
func (c *doubtCounter) sureUntil(i, j int, next index.Position, touches bool) {
	r, said := c.scope.readings, &c.said
	newest := c.holds.newest()
	p, silent, through := newest.stored, newest.silent, uint64(0)
	if r != nil {
		if silent { // a correction is the master's word
			if n := r.behind(p); n < len(r.list) && r.list[n].Position == p {
				through = r.list[n].Through
			}
		}
		if p.Before(said.base) {
			p, silent, through = said.base, c.silentAt(said.base), 0
		}
	}
	if said.none {
		c.addSure(i, j, p, silent, through)
		return
	}
	x, y := r.behind(c.since), r.behind(next)
	touched := touches && y > x && r.list[y-1].TouchedBy(next)
	if touched {
		y--
	}
	if x == y {
		c.addSure(i, j, p, silent, through)
		return
	}
	if len(said.excepted) > 0 {
		at := i
		for n := x; n < y; n++ {
			one := &r.list[n]
			if slices.Contains(said.excepted, one.Position) {
				continue
			}
			to := min(max(at, r.first[n]), max(at, j))
			c.addSure(at, to, p, silent, through)
			at, p, silent, through = to, one.Position, c.doubts.flagged[one.Epoch], one.Through
			said.base = one.Position
		}
		c.addSure(at, j, p, silent, through)
		return
	}
	// From the first reading on, the newest decides: of all objects like this one at once.
	first, end := min(max(i, r.first[x]), max(i, j)), j
	c.addSure(i, first, p, silent, through)
	last := &r.list[y-1]
	said.base = last.Position
	if touched {
		end = min(max(first, r.first[y]), max(first, j))
		c.addSure(end, j, last.Position, c.doubts.flagged[last.Epoch], last.Through)
	}
	if first < end {
		c.read.add(first, end)
	}
}

func (c *doubtCounter) silentAt(reading index.Position) bool {
	r := c.scope.readings
	return c.doubts.flagged[r.list[r.behind(reading)].Epoch]
}

func (c *doubtCounter) addSure(i, j int, p index.Position, silent bool, through uint64) {
	if k := c.doubts.sureBehind(i, j, p, silent, through); i < j && k > i {
		c.sure.add(i, k)
	}
}

// each calls f with each position behind which objects of the scope are sure, in order.
func (s *doubtScope) each(f func(i int, n uint64)) {
	if s.readings == nil {
		s.sure.each(f)
		return
	}
	type count struct {
		at int
		n  uint64
	}
	var read []count
	s.read.spans(func(i, j int, n uint64) {
		k, _ := slices.BinarySearch(s.readings.covered, i)
		for ; k < len(s.readings.covered) && s.readings.covered[k] < j; k++ {
			read = append(read, count{s.readings.covered[k], n})
		}
	})
	k := 0
	upTo := func(i int) {
		for ; k < len(read) && read[k].at < i; k++ {
			f(read[k].at, read[k].n)
		}
	}
	s.sure.each(func(i int, n uint64) {
		if upTo(i); k < len(read) && read[k].at == i {
			n += read[k].n
			k++
		}
		f(i, n)
	})
	upTo(math.MaxInt)
}
