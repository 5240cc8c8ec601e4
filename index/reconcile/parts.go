package reconcile

import (
	"bytes"
	"context"

	"github.com/kvjournal/kvjournal/journal/reading"
)

// partBytes is how large a part becomes at most, unless one entry is larger. A part is decoded at once when it is indexed.
const partBytes = 256 << 10

// Correction is a correction of a reading, for people.
type Correction struct {
	reading.Scope
	reading.Entry
}

// parts writes the entries of one scope, in parts.
type parts struct {
	begun       uint64
	scope       reading.Scope
	done        [][]byte
	open        []byte
	scratch     []byte
	corrections int
	exceptions  int
}

func newParts(begun uint64, scope reading.Scope) *parts { return &parts{begun: begun, scope: scope} }

func (p *parts) add(e *reading.Entry) {
	if e.What == reading.Unsaid {
		p.exceptions++
	} else {
		p.corrections++
	}
	p.scratch = reading.AppendEntry(p.scratch[:0], e)
	if len(p.open) > 0 && len(p.open)+len(p.scratch) > partBytes {
		p.close()
	}
	if len(p.open) == 0 {
		p.open = reading.AppendPart(p.open, p.begun, p.scope.Backend, p.scope.Tenant)
	}
	p.open = append(p.open, p.scratch...)
}

// close ends the part under way.
func (p *parts) close() {
	if len(p.open) > 0 {
		p.done = append(p.done, bytes.Clone(p.open))
		p.open = p.open[:0]
	}
}

// touchedAtOnce is how many keys Index.Touched is asked for at once.
const touchedAtOnce = 1024

// untouched returns the parts without what they say of objects that had an event in (h, e], and how many entries were left out. It
// gives up the old parts as it goes.
func (p *parts) untouched(ctx context.Context, x Index, h, e uint64) (*parts, int, error) {
	p.close()
	out := newParts(p.begun, p.scope)
	dropped := 0
	keys := make([][]byte, 0, touchedAtOnce)
	entries := make([]reading.Entry, 0, touchedAtOnce)
	touched := make([]bool, touchedAtOnce)
	flush := func() error {
		clear(touched)
		if err := x.Touched(ctx, p.scope, keys, h, e, touched[:len(keys)]); err != nil {
			return err
		}
		for i := range entries {
			if touched[i] {
				dropped++
			} else {
				out.add(&entries[i])
			}
		}
		keys, entries = keys[:0], entries[:0]
		return nil
	}
	for n, b := range p.done {
		part, err := reading.DecodePart(b)
		if err != nil {
			return nil, 0, err
		}
		for {
			entry, ok, err := part.Next()
			if err != nil {
				return nil, 0, err
			}
			if !ok {
				break
			}
			keys, entries = append(keys, entry.Key), append(entries, entry)
			if len(keys) == touchedAtOnce {
				if err := flush(); err != nil {
					return nil, 0, err
				}
			}
		}
		p.done[n] = nil
	}
	if err := flush(); err != nil {
		return nil, 0, err
	}
	out.close()
	return out, dropped, nil
}

// sample appends the first corrections, up to n in all.
func (p *parts) sample(dst []Correction, n int) []Correction {
	for _, b := range p.done {
		part, err := reading.DecodePart(b)
		for err == nil && len(dst) < n {
			var e reading.Entry
			var ok bool
			if e, ok, err = part.Next(); !ok {
				break
			}
			if e.What == reading.Unsaid {
				continue
			}
			e.Key, e.Medium = bytes.Clone(e.Key), bytes.Clone(e.Medium)
			dst = append(dst, Correction{p.scope, e})
		}
	}
	return dst
}

// untouched leaves only the keys without an event in (h, e].
func (l *Listing) untouched(ctx context.Context, x Index, scope reading.Scope, h, e uint64) error {
	all := make([]bool, l.Len())
	keys := make([][]byte, 0, touchedAtOnce)
	for at := 0; at < l.Len(); at += len(keys) {
		keys = keys[:0]
		for i := at; i < min(at+touchedAtOnce, l.Len()); i++ {
			keys = append(keys, l.Key(i))
		}
		if err := x.Touched(ctx, scope, keys, h, e, all[at:at+len(keys)]); err != nil {
			return err
		}
	}
	l.keep(func(i int) bool { return !all[i] })
	return nil
}
