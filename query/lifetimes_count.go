package query

import (
	"cmp"
	"maps"
	"slices"
)

// lifetimeCount is what is counted of the lifetimes that share a line.
type lifetimeCount struct {
	count, doubtful, untimed uint64
	open, openDoubtful       uint64
	by                       [endings]uint64
	took                     histogram
	again                    struct {
		count, doubtful, untimed, never uint64
		after                           histogram
	}
	// names is how many lines were merged into this one, where it is one of others.
	names uint64
}

func (c *lifetimeCount) weight() uint64 { return c.count + c.open }

func (c *lifetimeCount) merge(o *lifetimeCount) {
	c.count, c.doubtful, c.untimed = c.count+o.count, c.doubtful+o.doubtful, c.untimed+o.untimed
	c.open, c.openDoubtful, c.names = c.open+o.open, c.openDoubtful+o.openDoubtful, c.names+o.names
	for i := range c.by {
		c.by[i] += o.by[i]
	}
	c.took.merge(&o.took)
	a, b := &c.again, &o.again
	a.count, a.doubtful, a.untimed, a.never = a.count+b.count, a.doubtful+b.doubtful, a.untimed+b.untimed, a.never+b.never
	a.after.merge(&b.after)
}

// Bounds of what is counted apart, whatever was recorded; what is beyond them goes into the line of others.
const (
	// countedNames is how many lines (of all media) are counted apart. Where there are more, the smaller half joins the others from
	// time to time, so that the largest stay.
	countedNames = 4096
	countedMedia = 64
	// countedName is how long a name may be, in bytes.
	countedName = 1024
)

// lifetimeTable counts lifetimes by medium and name: a tenant or a group.
type lifetimeTable struct {
	media map[string]*mediumTable
	names int // over all media
}

type mediumTable struct {
	named   map[string]*lifetimeCount
	unnamed *lifetimeCount // without a group, or where nothing is told apart
	others  *lifetimeCount
}

// line returns what counts for a medium and a name; nil is no name.
func (t *lifetimeTable) line(medium string, name []byte) *lifetimeCount {
	m := t.medium(medium)
	if name == nil {
		return made(&m.unnamed)
	}
	if c := m.named[string(name)]; c != nil {
		return c
	}
	if len(name) > countedName {
		c := made(&m.others)
		c.names = max(c.names, 1)
		return c
	}
	if t.names >= countedNames {
		t.shrink()
	}
	c := &lifetimeCount{}
	m.named[string(name)] = c
	t.names++
	return c
}

// medium returns the table of a medium, or, where there are too many, that of all others: "".
func (t *lifetimeTable) medium(name string) *mediumTable {
	if m := t.media[name]; m != nil {
		return m
	}
	if t.media == nil {
		t.media = map[string]*mediumTable{}
	}
	if len(t.media) >= countedMedia && name != "cpu" && name != "disk" {
		name = ""
		if m := t.media[name]; m != nil {
			return m
		}
	}
	m := &mediumTable{named: map[string]*lifetimeCount{}}
	t.media[name] = m
	return m
}

func made(c **lifetimeCount) *lifetimeCount {
	if *c == nil {
		*c = &lifetimeCount{}
	}
	return *c
}

// shrink lets the smaller half of the names join the others of their medium.
func (t *lifetimeTable) shrink() {
	var weights []uint64
	for _, m := range t.media {
		for _, c := range m.named {
			weights = append(weights, c.weight())
		}
	}
	slices.Sort(weights)
	limit := weights[len(weights)/2]
	for _, m := range t.media {
		for name, c := range m.named {
			if c.weight() <= limit {
				t.drop(m, name, c)
			}
		}
	}
}

func (t *lifetimeTable) drop(m *mediumTable, name string, c *lifetimeCount) {
	c.names = 1
	made(&m.others).merge(c)
	delete(m.named, name)
	t.names--
}

// merge adds what o counted.
func (t *lifetimeTable) merge(o *lifetimeTable) {
	for _, medium := range slices.Sorted(maps.Keys(o.media)) {
		from := o.media[medium]
		to := t.medium(medium)
		for name, c := range from.named {
			t.line(medium, []byte(name)).merge(c)
		}
		if from.unnamed != nil {
			made(&to.unnamed).merge(from.unnamed)
		}
		if from.others != nil {
			made(&to.others).merge(from.others)
		}
	}
}

// top keeps the n largest names of each medium.
func (t *lifetimeTable) top(n int) {
	for _, m := range t.media {
		for _, name := range m.largest()[min(n, len(m.named)):] {
			t.drop(m, name, m.named[name])
		}
	}
}

// largest lists the names, those with the most lifetimes first.
func (m *mediumTable) largest() []string {
	return slices.SortedFunc(maps.Keys(m.named), func(a, b string) int {
		return cmp.Or(cmp.Compare(m.named[b].weight(), m.named[a].weight()), cmp.Compare(a, b))
	})
}

// mediaInOrder lists the media: cpu, disk, the others by name, at last what stands for all further ones.
func (t *lifetimeTable) mediaInOrder() []string {
	rank := func(medium string) int {
		if i := slices.Index([]string{"cpu", "disk"}, medium); i >= 0 {
			return i
		}
		if medium == "" {
			return 4
		}
		return 3
	}
	return slices.SortedFunc(maps.Keys(t.media), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
}
