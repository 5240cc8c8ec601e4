package query

import (
	"context"
	"slices"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
)

// gapBuffer holds losses of a source back until what they put in doubt is counted, for many at once.
type gapBuffer struct {
	source journal.Source
	known  uint64 // what was put in doubt before this offset is not known any more
	lines  []*GapOut
	first  []bool // of lines: no loss before it lies behind the same message
}

// gapsAtOnce is how many losses are counted in one pass over the objects. It bounds what is held of them: at most 125 scopes of 8 bytes
// each, and only those where something was stored since the loss before.
var gapsAtOnce = 1 << 17 // tests set it lower

// fill counts what the losses put in doubt.
func (b *gapBuffer) fill(ctx context.Context, v *index.View, progress Progress) error {
	var at []uint64
	for _, g := range b.lines {
		if g.LastOffsetBefore > 0 && g.LastOffsetBefore >= b.known {
			at = append(at, g.LastOffsetBefore)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	var d *doubts
	if len(at) > 0 {
		var err error
		if d, err = newDoubts(v, b.source.ID, at); err != nil {
			return err
		}
		if err := d.count(ctx, v, progress); err != nil {
			return err
		}
	}
	for i, g := range b.lines {
		switch {
		case g.LastOffsetBefore == 0:
			g.InDoubt = &InDoubt{Scopes: []ScopeInDoubt{}}
		case g.LastOffsetBefore < b.known:
		default:
			g.InDoubt = d.out(g.LastOffsetBefore)
			if !b.first[i] {
				g.InDoubt = &InDoubt{AlreadyInDoubt: g.InDoubt.Objects + g.InDoubt.AlreadyInDoubt, Scopes: []ScopeInDoubt{}}
			}
		}
	}
	return nil
}
