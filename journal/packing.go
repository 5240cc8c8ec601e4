package journal

import "slices"

// Full blocks of a group are compressed beside the appending goroutine, while the group goes on growing. Only bytes are made there: what
// a block holds is settled before, and the blocks come into the group's batch in their order, after all of them are made. So a group is
// committed as a whole or not at all, as ever.

// packers is how many blocks of a group are compressed at once, beside the one that is filled.
const packers = 2

// packing is a full block that is being compressed.
type packing struct {
	build *builder
	done  chan struct{} // closed when build.stored is the block
}

// newBuilder returns an empty builder, one that was used before where there is one: it knows the shapes of events, and has its buffers.
func (j *Journal) newBuilder() *builder {
	n := len(j.builders)
	if n == 0 {
		return &builder{}
	}
	b := j.builders[n-1]
	j.builders = j.builders[:n-1]
	return b
}

// freeBuilder takes a builder that is done with. One that a giant message made large is let go.
func (j *Journal) freeBuilder(b *builder) {
	if len(j.builders) <= packers && b.raw <= maxBlockRaw && cap(b.scratch) <= maxBlockRaw && cap(b.stored) <= 2*maxBlockRaw {
		j.builders = append(j.builders, b)
	}
}

// pack begins to compress the group's block; another takes its place.
func (g *Group) pack() {
	if len(g.packing) == packers {
		g.storeOldest()
	}
	p := packing{g.build, make(chan struct{})}
	g.packing = append(g.packing, p)
	g.build = g.j.newBuilder()
	g.j.packing.Go(func() {
		defer close(p.done)
		p.build.pack(g.j.codec)
	})
}

// storeOldest waits for the block that has been compressed for the longest time, and puts it into the group's batch.
func (g *Group) storeOldest() {
	p := g.packing[0]
	<-p.done
	g.packing = slices.Delete(g.packing, 0, 1)
	g.store(p.build)
}

// store puts a finished block into the batch. They must come in their order: the first in a log says where the log begins (intact.go).
func (g *Group) store(b *builder) {
	g.note(g.batch.Set(blockKey(b.first), b.stored, nil))
	g.j.freeBuilder(b)
}

// storeAll puts all blocks that are not there yet into the batch.
func (g *Group) storeAll() {
	last := g.build
	if last.count > 0 {
		g.writeRows()
		last.pack(g.j.codec)
	}
	for len(g.packing) > 0 {
		g.storeOldest()
	}
	if last.count > 0 {
		g.store(last)
	} else {
		g.j.freeBuilder(last)
	}
	g.build = nil
}

// writeRows writes the rows beside the group's newest block, whose records were all added.
func (g *Group) writeRows() {
	g.note(g.rows.write(g.batch, g.build.first, func(source uint32) (int64, bool) {
		c := g.j.clockOf(source)
		return c.highest, c.has
	}))
	g.rows.reset()
}
