package index

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestSplit: whatever the number of parts, each object with the prefix is in exactly one of them, with all its rows, in the order in
// which it is stored; parts are walked at the same time.
func TestSplit(t *testing.T) {
	w := newWalked(t, 4000)
	if err := w.x.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []bool{false, true} {
		v := view(t, w.x)
		if cut { // at every few objects, as if tables were that small
			v.bounded, v.bounds = true, w.everyFew()
		}
		for _, s := range w.scopes() {
			objects := w.naiveObjects(&s)
			for i, prefix := range w.prefixes() {
				n := 1 + w.rng.IntN(12)
				parts, err := v.Split(&s, []byte(prefix), n)
				if err != nil {
					t.Fatal(err)
				}
				if len(parts) > 2*n+2 || len(parts) == 0 {
					t.Errorf("%d parts, asked for %d", len(parts), n)
				}
				if cut && i == 0 && n > 1 && len(objects) > 40 && len(parts) < 2 {
					t.Errorf("%d objects were not split into %d", len(objects), n)
				}
				found := make([][]string, len(parts))
				var wg sync.WaitGroup
				for k := range parts {
					wg.Go(func() { found[k] = w.part(&parts[k], objects) })
				}
				wg.Wait()
				var got, want []string
				last := ""
				for _, f := range found {
					for _, key := range f {
						stored := string(appendObject(nil, []byte(key)))
						if stored <= last {
							t.Fatalf("%q is not in order", key)
						}
						last = stored
						got = append(got, key)
					}
				}
				for key := range objects {
					if strings.HasPrefix(key, prefix) {
						want = append(want, key)
					}
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%+v, prefix %q in %d parts:\ngot  %q\nwant %q", s, prefix, n, got, want)
				}
			}
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// part walks a part on a goroutine of its own.
func (w *walked) part(p *Part, objects map[string][]naiveRow) (keys []string) {
	walk, err := p.Walk()
	if err != nil {
		w.t.Error(err)
		return nil
	}
	for walk.Next() {
		key := string(walk.Key())
		keys = append(keys, key)
		var rows []naiveRow
		for walk.NextRow() {
			r := walk.Row()
			rows = append(rows, naiveRow{r.Medium, r.Position, r.Stored, ""})
		}
		same := func(a, b naiveRow) bool { return a.medium == b.medium && a.at == b.at && a.stored == b.stored }
		if !slices.EqualFunc(rows, objects[key], same) {
			w.t.Errorf("rows of %q: got %v, want %v", key, rows, objects[key])
		}
	}
	if err := walk.Close(); err != nil {
		w.t.Error(err)
	}
	return keys
}

// everyFew are bounds at every third object.
func (w *walked) everyFew() [][]byte {
	var out []string
	for _, s := range w.scopes() {
		for key := range w.naiveObjects(&s) {
			out = append(out, string(appendObject(s.append([]byte{keyHistory}), []byte(key))))
		}
	}
	slices.Sort(out)
	var bounds [][]byte
	for i := 0; i < len(out); i += 3 {
		bounds = append(bounds, []byte(out[i]))
	}
	return bounds
}

// TestTableBounds: the bounds that a large index gives are beginnings of objects, in order.
func TestTableBounds(t *testing.T) {
	w := newWalked(t, 3000)
	if err := w.x.Flush(); err != nil {
		t.Fatal(err)
	}
	v := view(t, w.x)
	defer v.Close()
	bounds, err := v.tableBounds()
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range bounds {
		if split(b) != len(b) || b[0] != keyHistory || i > 0 && string(bounds[i-1]) >= string(b) {
			t.Errorf("bound %d: %q", i, b)
		}
	}
}
