package reconcile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kvjournal/kvjournal/index"
)

// answers judges objects as of the newest batch, mark or reading.
func (w *world) answers(names []name) map[name][]Medium { return w.answersAt(names, 0) }

// answersAt judges objects as of the record at an offset; 0: the newest.
func (w *world) answersAt(names []name, offset uint64) map[name][]Medium {
	w.t.Helper()
	v, err := w.x.View()
	if err != nil {
		w.t.Fatal(err)
	}
	defer v.Close()
	if offset == 0 {
		offset = v.Source(w.source).AsOf.Offset
	}
	at := index.Behind(offset)
	out := map[name][]Medium{}
	tenants := map[string]*rules{}
	walk, err := v.Picks()
	if err != nil {
		w.t.Fatal(err)
	}
	defer walk.Close()
	for _, n := range names {
		r := tenants[n.tenant]
		if r == nil {
			scope := index.Scope{Source: w.source, Backend: []byte(w.backend), Tenant: []byte(n.tenant)}
			if r, err = newRules(w.j, v, &scope, at); err != nil {
				w.t.Fatal(err)
			}
			tenants[n.tenant] = r
		}
		walk.Pick(&index.Object{Source: w.source, Backend: r.scope.Backend, Tenant: r.scope.Tenant, Key: []byte(n.key)})
		rows := map[string]*index.Evidence{}
		var media []string
		for walk.NextRowAt(at) {
			e := walk.Row().Evidence
			rows[walk.Row().Medium] = &e
			media = append(media, walk.Row().Medium)
			walk.SkipMedium()
		}
		if out[n], err = r.media(nil, []byte(n.key), rows, media); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

// check compares confirmed answers with the truth. It returns how many media were confirmed.
func (w *world) check(what string, names []name) (sure int) {
	w.t.Helper()
	sure = w.compare(what, w.answers(names), w.truth)
	// And as of some of the messages that came since the last check.
	offsets := slices.Sorted(maps.Keys(w.states))
	for i := 0; i < len(offsets); i += 1 + len(offsets)/4 {
		w.compare(fmt.Sprintf("%s, as of offset %d", what, offsets[i]), w.answersAt(names, offsets[i]), w.states[offsets[i]])
	}
	clear(w.states)
	return sure
}

func (w *world) compare(what string, answers map[name][]Medium, truth map[name]word) (sure int) {
	w.t.Helper()
	for n, media := range answers {
		for _, m := range media {
			if !m.Sure {
				continue
			}
			sure++
			bit := onCPU
			if m.Name == disk {
				bit = onDisk
			}
			if have := truth[n]&bit != 0; have != m.Present {
				w.t.Fatalf("%s: %q of tenant %s on %s is confirmed as present=%v, and is %v", what, n.key, n.tenant, m.Name, m.Present, have)
			}
		}
	}
	return sure
}
