package query

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/kvjournal/kvjournal/index"
)

// ObjectCounts are how many objects match a question.
type ObjectCounts struct {
	Tally
	// Tenants are the tenants with the most objects, at most 1,000 of them; OtherTenants sums up the rest.
	Tenants      []TenantTally `json:"tenants"`
	OtherTenants *OtherTally   `json:"other_tenants,omitempty"`
	// AsOf is the moment, for each source.
	AsOf []SourceAsOf `json:"as_of"`
}

// Tally counts objects.
type Tally struct {
	Objects   uint64 `json:"objects"`
	Confirmed uint64 `json:"confirmed"`
	Uncertain uint64 `json:"uncertain"`
	// Media are the media on which any of them is present, cpu and disk always: of all media, the first 64 met; the others
	// are in one without a name.
	Media []MediumTally `json:"media"`
}

// MediumTally counts the objects that are present on a medium.
type MediumTally struct {
	Medium    string `json:"medium,omitempty"`
	Objects   uint64 `json:"objects"`
	Confirmed uint64 `json:"confirmed"`
	Uncertain uint64 `json:"uncertain"`
}

// TenantTally counts the objects of one tenant of one backend of a source.
type TenantTally struct {
	Name Name
	Tally
}

// OtherTally sums up the tenants that are not listed.
type OtherTally struct {
	Tenants uint64 `json:"tenants"`
	Tally
}

// SourceAsOf is the moment an answer speaks of in a source.
type SourceAsOf struct {
	Source string `json:"source"`
	AsOf
}

type tenantTallyJSON struct {
	nameJSON
	Tally
}

// MarshalJSON writes the tenant's name as the command-line contract has it.
func (t *TenantTally) MarshalJSON() ([]byte, error) {
	return json.Marshal(tenantTallyJSON{t.Name.json(), t.Tally})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *TenantTally) UnmarshalJSON(b []byte) error {
	var w tenantTallyJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	t.Tally = w.Tally
	return t.Name.read(&w.nameJSON)
}

// maxMedia bounds the media that are counted by name.
const maxMedia = 64

func newTally() Tally { return Tally{Media: []MediumTally{{Medium: "cpu"}, {Medium: "disk"}}} }

// medium returns the place of a medium.
func (t *Tally) medium(name string) *MediumTally {
	for i := range t.Media {
		if t.Media[i].Medium == name {
			return &t.Media[i]
		}
	}
	if name != "" && len(t.Media) >= 2+maxMedia {
		return t.medium("")
	}
	t.Media = append(t.Media, MediumTally{Medium: name})
	return &t.Media[len(t.Media)-1]
}

// object counts one.
func (t *Tally) object(o *standing, confirmed bool) {
	t.Objects++
	if confirmed {
		t.Confirmed++
	}
	for i := range o.media {
		m := &o.media[i]
		if !m.present {
			continue
		}
		c := &t.Media[min(i, 1)]
		if i > 1 {
			c = t.medium(m.name)
		}
		c.Objects++
		if m.confirmed() {
			c.Confirmed++
		}
	}
}

func (t *Tally) add(o *Tally) {
	t.Objects += o.Objects
	t.Confirmed += o.Confirmed
	for i := range o.Media {
		m := t.medium(o.Media[i].Medium)
		m.Objects += o.Media[i].Objects
		m.Confirmed += o.Media[i].Confirmed
	}
}

// finish fills in what follows from the rest.
func (t *Tally) finish() {
	t.Uncertain = t.Objects - t.Confirmed
	for i := range t.Media {
		t.Media[i].Uncertain = t.Media[i].Objects - t.Media[i].Confirmed
	}
	slices.SortFunc(t.Media[2:], func(a, b MediumTally) int {
		return cmp.Or(cmp.Compare(b2i(a.Medium == ""), b2i(b.Medium == "")), strings.Compare(a.Medium, b.Medium))
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// listedTenants is how many tenants are counted one by one.
const listedTenants = 1000

// counted is a scope while its parts are counted.
type counted struct {
	*scopeAt
	mu    sync.Mutex
	tally Tally
}

// CountObjects counts the objects that Objects would give without a limit, on several goroutines. progress is told parts of the index.
func (e *Engine) CountObjects(ctx context.Context, q ObjectsQuestion, progress Progress) (*ObjectCounts, error) {
	s, err := e.choose(ctx, q.Source, q.At)
	if err != nil {
		return nil, err
	}
	defer s.view.Close()
	workers := make([]standing, scanners())
	for i := range workers {
		workers[i].want = q.Medium
	}
	out := &ObjectCounts{Tally: newTally(), Tenants: []TenantTally{}, AsOf: []SourceAsOf{}}
	for i, src := range s.sources {
		out.AsOf = append(out.AsOf, SourceAsOf{src.Name, s.moments[i].asOf})
	}
	scopes := func(give func(*index.Scope, *counted) error) error {
		for i, src := range s.sources {
			err := q.scopes(s.view, src.ID, func(scope *index.Scope) error {
				at, err := newScopeAt(s.view, scope, src.Name, &s.moments[i])
				if err != nil {
					return err
				}
				return give(scope, &counted{scopeAt: at, tally: newTally()})
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	count := func(ctx context.Context, worker int, c *counted, w *index.Walk) error {
		t, err := q.count(ctx, &workers[worker], c.scopeAt, w)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tally.add(&t)
		return err
	}
	if err := scan(ctx, s.view, q.Prefix, progress, scopes, count, out.tenant); err != nil {
		return nil, err
	}
	out.fold(listedTenants)
	out.finish()
	for i := range out.Tenants {
		out.Tenants[i].finish()
	}
	if out.OtherTenants != nil {
		out.OtherTenants.finish()
	}
	return out, nil
}

// count counts the objects of a walk.
func (q *ObjectsQuestion) count(ctx context.Context, o *standing, at *scopeAt, w *index.Walk) (Tally, error) {
	t := newTally()
	for n := 1; w.Next(); n++ {
		if n%lookEvery == 0 && ctx.Err() != nil {
			return t, ctx.Err()
		}
		if err := o.read(w, at, q.Group != nil); err != nil {
			return t, err
		}
		if !q.matches(o) {
			continue
		}
		confirmed := o.confirmed
		if q.Medium != "" {
			confirmed = o.find(q.Medium).confirmed()
		}
		t.object(o, confirmed)
	}
	return t, nil
}

// tenant takes a scope that is counted.
func (c *ObjectCounts) tenant(s *counted) {
	if s.tally.Objects == 0 {
		return
	}
	c.add(&s.tally)
	c.Tenants = append(c.Tenants, TenantTally{Name{Source: s.source, Backend: notNil(s.Backend), Tenant: notNil(s.Tenant)}, s.tally})
	if len(c.Tenants) >= 2*listedTenants {
		c.fold(listedTenants)
	}
}

// fold keeps the n tenants with the most objects, and sums up the others.
func (c *ObjectCounts) fold(n int) {
	slices.SortFunc(c.Tenants, func(a, b TenantTally) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), strings.Compare(a.Name.Source, b.Name.Source), slices.Compare(a.Name.Backend, b.Name.Backend), slices.Compare(a.Name.Tenant, b.Name.Tenant))
	})
	if len(c.Tenants) <= n {
		return
	}
	if c.OtherTenants == nil {
		c.OtherTenants = &OtherTally{Tally: newTally()}
	}
	for i := range c.Tenants[n:] {
		c.OtherTenants.Tenants++
		c.OtherTenants.add(&c.Tenants[n+i].Tally)
	}
	clear(c.Tenants[n:])
	c.Tenants = c.Tenants[:n]
}
