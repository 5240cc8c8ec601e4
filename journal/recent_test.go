package journal

import "testing"

// TestRecent: what is asked for stays, what is not goes, and the size is kept.
func TestRecent(t *testing.T) {
	r := newRecent[int, int](100)
	r.put(-1, -1, 51) // larger than a generation
	for i := range 1000 {
		r.put(i, i, 1+i%3)
		if v, ok := r.get(7); i >= 7 && (!ok || v != 7) {
			t.Fatalf("7 came back as %d, %v behind %d", v, ok, i)
		}
		size := 0
		for _, g := range []map[int]sized[int]{r.young, r.old} {
			for k, v := range g {
				if k < 0 || v.value != k {
					t.Fatalf("%d is kept as %d", k, v.value)
				}
				size += v.size
			}
		}
		if size > 100 {
			t.Fatalf("%d are kept", size)
		}
	}
	if _, ok := r.get(500); ok {
		t.Fatal("nothing was forgotten")
	}
}
