package query

import "github.com/kvjournal/kvjournal/index"

// ResolvedOut is the first reading of the master behind a loss. What it covered is in doubt for that loss no more, but for what the
// master gave no answer about; the other tenants stay in doubt.
type ResolvedOut struct {
	// Offset is that of the record that ended it, Time its time on our clock.
	Offset uint64 `json:"offset"`
	Time   *Time  `json:"time"`
	Why    string `json:"why"`
	// Tenants are those covered, 100 at most; TenantsTotal is how many there are. Tenants is left out where one is no UTF-8.
	Tenants       []string `json:"tenants,omitempty"`
	TenantsBase64 [][]byte `json:"tenants_base64"`
	TenantsTotal  int      `json:"tenants_total"`
	// Corrections is how much the master had otherwise, medium by medium.
	Corrections int   `json:"corrections"`
	TookMs      int64 `json:"took_ms"`
}

// resolvedTenants is how many tenants of a reading are named.
const resolvedTenants = 100

func resolvedOut(r *index.SourceReading) *ResolvedOut {
	out := &ResolvedOut{Offset: r.Offset, Time: msTime(r.Received), Why: r.Why, TenantsBase64: [][]byte{}, Corrections: r.Corrections, TookMs: r.TookMs}
	seen := map[string]bool{}
	text := true
	for _, s := range r.Scopes {
		if seen[string(s.Tenant)] {
			continue
		}
		seen[string(s.Tenant)] = true
		if out.TenantsTotal++; out.TenantsTotal > resolvedTenants {
			continue
		}
		out.TenantsBase64 = append(out.TenantsBase64, append([]byte{}, s.Tenant...))
		t := Bytes(append([]byte{}, s.Tenant...)).text()
		if text = text && t != nil; text {
			out.Tenants = append(out.Tenants, *t)
		}
	}
	if !text {
		out.Tenants = nil
	}
	return out
}

// resolver finds what resolved the losses of one source, in their order.
type resolver struct {
	v      *index.View
	source uint32
	// next is the first reading that began behind the offset from, nil: none. known: it was sought.
	known bool
	from  uint64
	next  *index.SourceReading
	out   *ResolvedOut // of next
}

func (r *resolver) of(g *index.Gap) (*ResolvedOut, error) {
	behind := g.After
	m, ok, err := r.v.Mark(r.source, g.After)
	if err != nil {
		return nil, err
	}
	if ok {
		behind = max(behind, m.End.Offset)
	}
	if r.known && r.from <= behind && (r.next == nil || behind < r.next.Begun) {
		return r.out, nil
	}
	r.known, r.from, r.next, r.out = true, behind, nil, nil
	err = r.v.SourceReadings(r.source, behind, r.v.Applied(), func(one *index.SourceReading) error {
		r.next, r.out = one, resolvedOut(one)
		return errEnough
	})
	if err == errEnough {
		err = nil
	}
	return r.out, err
}
