package index

import (
	"bytes"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// dumpRows lists all keys and values, but for live rows that are older than the newest clear of their scope: whether those
// are there still depends on when the index was reopened (applier.lastClear), and no answer shows them.
func dumpRows(t *testing.T, x *Index) map[string]string {
	t.Helper()
	it, err := x.db.NewIter(&pebble.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	newest := map[string]Position{} // of the clears, by scope; they stand before the live rows
	rows := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		switch k[0] {
		case keyClear:
			p, ok := cutPosition(k[split(k):])
			if !ok {
				t.Fatalf("clear row %x", k)
			}
			if scope := string(k[1:split(k)]); newest[scope].Before(p) {
				newest[scope] = p
			}
		case keyLive:
			p, err := livePosition(it.Value())
			if err != nil {
				t.Fatal(err)
			}
			if p.Before(newest[string(k[1:scopeLength(k)])]) {
				continue
			}
		}
		rows[string(k)] = string(it.Value())
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// sameRows fails the test where two dumps differ.
func sameRows(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	var keys []string
	for k := range want {
		keys = append(keys, k)
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	shown := 0
	for _, k := range keys {
		g, inGot := got[k]
		w, inWant := want[k]
		if inGot == inWant && bytes.Equal([]byte(g), []byte(w)) {
			continue
		}
		if shown++; shown <= 5 {
			t.Errorf("%s: row %q:\ngot  %q (there: %v)\nwant %q (there: %v)", what, k, g, inGot, w, inWant)
		}
	}
	if shown > 0 {
		t.Fatalf("%s: %d of %d rows differ", what, shown, len(keys))
	}
}
