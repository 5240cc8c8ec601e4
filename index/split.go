package index

import (
	"bytes"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2"
)

// Split cuts the objects of a scope whose keys begin with prefix into runs of like size on disk, about n of them or fewer, for walks that
// need no order. Each is opened with its Walk, by any goroutine.
func (v *View) Split(s *Scope, prefix []byte, n int) ([]Part, error) {
	scope := s.append([]byte{keyHistory})
	var out []Part
	for _, r := range keyRanges(prefix) {
		low, high := append(bytes.Clone(scope), r.low...), append(bytes.Clone(scope), r.high...)
		if last := len(out) - 1; last >= 0 && bytes.Equal(out[last].high, low) {
			out[last].high = high
			continue
		}
		out = append(out, Part{v, len(scope), low, high})
	}
	if n <= 1 {
		return out, nil
	}
	all, err := v.tableBounds()
	if err != nil {
		return nil, err
	}
	var cut []Part
	for _, p := range out {
		// Bounds strictly between low and high.
		first := sort.Search(len(all), func(i int) bool { return bytes.Compare(all[i], p.low) > 0 })
		end := sort.Search(len(all), func(i int) bool { return bytes.Compare(all[i], p.high) >= 0 })
		bounds := all[first:max(first, end)]
		step := max(1, (len(bounds)+n)/n)
		low := p.low
		for i := step - 1; i < len(bounds); i += step {
			cut = append(cut, Part{v, p.scope, low, bounds[i]})
			low = bounds[i]
		}
		cut = append(cut, Part{v, p.scope, low, p.high})
	}
	return cut, nil
}

// tableBounds are the objects at which tables of the history's largest level begin, in order. They are read once for a view.
func (v *View) tableBounds() ([][]byte, error) {
	if v.bounded {
		return v.bounds, nil
	}
	low, high := []byte{keyHistory}, []byte{keyHistory + 1}
	levels, err := v.x.db.SSTables(pebble.WithKeyRangeFilter(low, high))
	if err != nil {
		return nil, err
	}
	for _, tables := range levels {
		var these [][]byte
		for _, t := range tables {
			k := t.Smallest.UserKey
			if k = k[:split(k)]; bytes.Compare(low, k) < 0 && bytes.Compare(k, high) < 0 {
				these = append(these, bytes.Clone(k))
			}
		}
		if len(these) > len(v.bounds) {
			v.bounds = these
		}
	}
	slices.SortFunc(v.bounds, bytes.Compare)
	v.bounds, v.bounded = slices.CompactFunc(v.bounds, bytes.Equal), true
	return v.bounds, nil
}

// Part is a run of objects of a scope.
type Part struct {
	view      *View
	scope     int
	low, high []byte
}

// Walk walks the part's objects, in the order in which they are stored.
func (p *Part) Walk() (*Walk, error) {
	it, err := p.view.rows(p.low, p.high)
	if err != nil {
		return nil, err
	}
	r := &run{it: it, scope: p.scope}
	r.on = it.First()
	w := &Walk{runs: []*run{r}}
	w.fail(r.object())
	return w, nil
}
