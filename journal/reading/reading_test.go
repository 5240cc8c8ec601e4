package reading

import (
	"bytes"
	"reflect"
	"testing"
)

var entries = []Entry{
	{Present, []byte("k"), []byte("cpu")}, {Absent, []byte("k\x00,\xff"), []byte("disk")}, {Unsaid, []byte("a,b"), nil},
}

func part() []byte {
	b := AppendPart(nil, 300, []byte("b0"), nil)
	for i := range entries {
		b = AppendEntry(b, &entries[i])
	}
	return b
}

func read(b []byte) (*Part, []Entry, error) {
	p, err := DecodePart(b)
	if err != nil {
		return nil, nil, err
	}
	var out []Entry
	for {
		e, ok, err := p.Next()
		if err != nil || !ok {
			return p, out, err
		}
		out = append(out, e)
	}
}

func TestPartRoundTrip(t *testing.T) {
	p, got, err := read(part())
	if err != nil || p.Begun != 300 || string(p.Backend) != "b0" || len(p.Tenant) != 0 || !reflect.DeepEqual(got, entries) {
		t.Fatalf("got %+v, %+v, %v", p, got, err)
	}
}

// Every part that is cut in the middle of an entry is refused; one that is cut between two cannot be told from a shorter one,
// which the journal's checksum does.
func TestPartCut(t *testing.T) {
	whole := part()
	for n := range len(whole) {
		p, got, err := read(whole[:n])
		if err != nil {
			continue
		}
		again := AppendPart(nil, p.Begun, p.Backend, p.Tenant)
		for i := range got {
			again = AppendEntry(again, &got[i])
		}
		if !bytes.Equal(again, whole[:n]) {
			t.Fatalf("cut at %d it reads as %+v", n, got)
		}
	}
}

func FuzzPart(f *testing.F) {
	f.Add(part())
	f.Add([]byte{0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, got, err := read(b)
		if err != nil {
			return
		}
		again := AppendPart(nil, p.Begun, p.Backend, p.Tenant)
		for i := range got {
			again = AppendEntry(again, &got[i])
		}
		if p2, got2, err := read(again); err != nil || p2.Begun != p.Begun || !reflect.DeepEqual(got, got2) {
			t.Fatalf("%+v became %+v, %v", got, got2, err)
		}
	})
}
