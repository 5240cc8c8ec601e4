package oracle

import (
	"cmp"
	"slices"
)

// Touch is an event about an object, or a cleared of its scope.
type Touch struct {
	Offset uint64
	Index  int    // in its batch, from 0 on
	Kind   string // stored, removed or cleared
	Medium string // of a cleared: none
	Proof  bool   // of a cleared: it may prove absence (R7)
}

// History lists what touched obj, in the order of the stream. A cleared before the first event about it touched nothing.
func (o *Oracle) History(obj Object) []Touch {
	var all []Touch
	for _, m := range o.Media(obj) {
		for _, h := range o.events[placement{obj, m}] {
			kind := "removed"
			if h.stored {
				kind = "stored"
			}
			all = append(all, Touch{Offset: h.offset, Index: h.index, Kind: kind, Medium: m})
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, c := range o.clears[obj.scope()] {
		all = append(all, Touch{Offset: c.offset, Index: c.index, Kind: "cleared", Proof: c.proof})
	}
	slices.SortFunc(all, func(a, b Touch) int { return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index)) })
	first := slices.IndexFunc(all, func(t Touch) bool { return t.Kind != "cleared" })
	return all[first:]
}

// Doubt is how far the newest mark at or before an offset reaches: evidence at or before that offset confirms nothing. 0: there is no
// mark.
func (o *Oracle) Doubt(offset uint64) uint64 { return o.facts[offset].doubt }
