package oracle

import (
	"cmp"
	"slices"
	"strings"
)

// Touch is an event about an object, a cleared of its scope, or what a reading of the master said of it.
type Touch struct {
	Offset uint64
	Index  int    // in its batch, from 0 on
	Kind   string // stored, removed or cleared; correction or reading, with an Index of -1
	State  bool   // of a correction: the master has it
	Medium string // of a cleared: none
	Proof  bool   // of a cleared: it may prove absence (R7)
}

// History lists what touched obj, in the order of the stream. A cleared, or a reading that agreed, before the first event
// or correction about it touched nothing.
func (o *Oracle) History(obj Object) []Touch {
	var all []Touch
	for _, m := range o.Media(obj) {
		for _, h := range o.events[placement{obj, m}] {
			kind := "removed"
			if h.stored {
				kind = "stored"
			}
			if h.read {
				all = append(all, Touch{Offset: h.offset, Index: -1, Kind: "correction", Medium: m, State: h.stored})
				continue
			}
			all = append(all, Touch{Offset: h.offset, Index: h.index, Kind: kind, Medium: m})
		}
	}
	if len(all) == 0 {
		return nil
	}
	for _, r := range o.readings {
		corrects := false
		for p := range r.Found {
			corrects = corrects || p.Object == obj
		}
		if !corrects && o.speaks(r, obj) {
			all = append(all, Touch{Offset: r.Begun, Index: -1, Kind: "reading"})
		}
	}
	for _, c := range o.clears[obj.scope()] {
		all = append(all, Touch{Offset: c.offset, Index: c.index, Kind: "cleared", Proof: c.proof})
	}
	slices.SortFunc(all, func(a, b Touch) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index), strings.Compare(a.Medium, b.Medium))
	})
	first := slices.IndexFunc(all, func(t Touch) bool { return t.Kind != "cleared" && t.Kind != "reading" })
	return all[first:]
}

// Doubt is how far the newest mark at or before an offset reaches: evidence at or before that offset confirms nothing. 0: there is no
// mark.
func (o *Oracle) Doubt(offset uint64) uint64 { return o.facts[offset].doubt }
