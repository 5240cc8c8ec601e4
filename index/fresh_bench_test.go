package index

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// stacked is an index under way: of each of the flushes the tables lie in L0, one on top of the other.
func stacked(tb testing.TB, flushes int) *Index {
	tb.Helper()
	j := fill(tb, tb.TempDir(), flushes*2048, 64)
	tb.Cleanup(func() { j.Close() })
	o := testOptions(vfs.NewMem())
	o.Passing = true // nothing is compacted
	x, err := Open(j, true, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { x.Close() })
	for at := j.Durable() / uint64(flushes); x.Applied() < j.Durable(); at += j.Durable() / uint64(flushes) {
		if err := applyUpTo(tb, x, min(at, j.Durable())); err != nil {
			tb.Fatal(err)
		}
		if err := x.Flush(); err != nil {
			tb.Fatal(err)
		}
	}
	return x
}

func applyUpTo(tb testing.TB, x *Index, to uint64) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	_, err := x.catchUp(tb.Context(), to, nil)
	return err
}

// BenchmarkFirstView is the first question behind a write: a view of a new state, with 32 tables of L0 on top of each other.
func BenchmarkFirstView(b *testing.B) {
	x := stacked(b, 32)
	b.Logf("%d sublevels", x.Database().Levels[0].Sublevels)
	o := Object{Source: 1, Backend: []byte("b"), Tenant: []byte("default"), Key: []byte("never")}
	for _, c := range []struct {
		name string
		ask  bool
	}{{"open", false}, {"miss", true}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := x.fresh.drop(); err != nil {
					b.Fatal(err)
				}
				v, err := x.View()
				if err != nil {
					b.Fatal(err)
				}
				if c.ask {
					if _, err := v.Media(nil, &o, Behind(v.Applied())); err != nil {
						b.Fatal(err)
					}
				}
				if err := v.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
