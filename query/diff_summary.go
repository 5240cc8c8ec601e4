package query

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// DiffSummary sums up a diff.
type DiffSummary struct {
	ChangeTally
	// Objects is how many objects the changes are about.
	Objects uint64 `json:"objects"`
	// Media, Tenants and Groups count the same changes; cpu and disk are always listed.
	Media   []MediumChanges `json:"media"`
	Tenants []TenantChanges `json:"tenants"`
	Groups  []GroupChanges  `json:"groups"`
	// Others sum up what is not listed; WithoutGroup are the changes of objects without a group_id.
	OtherMedia   *OtherChanges `json:"other_media,omitempty"`
	OtherTenants *OtherChanges `json:"other_tenants,omitempty"`
	OtherGroups  *OtherChanges `json:"other_groups,omitempty"`
	WithoutGroup *ChangeTally  `json:"without_group,omitempty"`

	// Events and Clears between the moments, of the scopes asked for.
	Events uint64 `json:"events"`
	Clears uint64 `json:"clears"`
	// Corrections are what readings of the master which began between the moments found to be otherwise, medium by medium.
	Corrections uint64 `json:"corrections,omitempty"`
	// Messages, Marks, Restarts, Damaged and Gaps between the moments, of the sources. Each mark puts in doubt what was known before it.
	Messages uint64       `json:"messages"`
	Marks    uint64       `json:"marks"`
	Restarts uint64       `json:"restarts"`
	Damaged  uint64       `json:"damaged"`
	Gaps     []CauseCount `json:"gaps"`
	// From and To are the moments, for each source.
	From []SourceAsOf `json:"from"`
	To   []SourceAsOf `json:"to"`
}

// ChangeTally counts changes: how many objects were gained and lost on a medium, and for how many of them the state at the second
// moment is confirmed. (What was gained was often not known before, so the first moment tells little.)
type ChangeTally struct {
	Gained          uint64 `json:"gained"`
	GainedConfirmed uint64 `json:"gained_confirmed"`
	Lost            uint64 `json:"lost"`
	LostConfirmed   uint64 `json:"lost_confirmed"`
}

func (t *ChangeTally) change(gained, certain bool) {
	n, sure := &t.Lost, &t.LostConfirmed
	if gained {
		n, sure = &t.Gained, &t.GainedConfirmed
	}
	*n++
	if certain {
		*sure++
	}
}

func (t *ChangeTally) add(o *ChangeTally) {
	t.Gained += o.Gained
	t.GainedConfirmed += o.GainedConfirmed
	t.Lost += o.Lost
	t.LostConfirmed += o.LostConfirmed
}

func (t *ChangeTally) all() uint64 { return t.Gained + t.Lost }

// MediumChanges are the changes on one medium.
type MediumChanges struct {
	Medium string `json:"medium"`
	ChangeTally
}

// TenantChanges are the changes of one tenant of one backend of a source.
type TenantChanges struct {
	Name Name
	ChangeTally
}

type tenantChangesJSON struct {
	nameJSON
	ChangeTally
}

// MarshalJSON writes the tenant's name as the command-line contract has it.
func (t *TenantChanges) MarshalJSON() ([]byte, error) {
	return json.Marshal(tenantChangesJSON{t.Name.json(), t.ChangeTally})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *TenantChanges) UnmarshalJSON(b []byte) error {
	var w tenantChangesJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	t.ChangeTally = w.ChangeTally
	return t.Name.read(&w.nameJSON)
}

// GroupChanges are the changes of the objects of one group.
type GroupChanges struct {
	Group Bytes
	ChangeTally
}

type groupChangesJSON struct {
	groupJSON
	ChangeTally
}

// MarshalJSON writes the group as the command-line contract has it.
func (g *GroupChanges) MarshalJSON() ([]byte, error) {
	return json.Marshal(groupChangesJSON{groupJSON{g.Group.text(), g.Group.base64()}, g.ChangeTally})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (g *GroupChanges) UnmarshalJSON(b []byte) (err error) {
	var w groupChangesJSON
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	g.ChangeTally = w.ChangeTally
	g.Group, err = w.bytes()
	return err
}

// OtherChanges sum up what is not listed. Number is how many of them there are, at least: one that was dropped from the count to make
// room and came again is counted twice, and what is listed may then be too low.
type OtherChanges struct {
	Number uint64 `json:"number"`
	ChangeTally
}

// CauseCount is how many gaps had a cause, and how many events were lost in those of which that is known.
type CauseCount struct {
	Cause         string `json:"cause"`
	Gaps          uint64 `json:"gaps"`
	LostEventsMin uint64 `json:"lost_events_min"`
	LostEventsMax uint64 `json:"lost_events_max"`
	// NotKnown is of how many gaps that is not known.
	NotKnown uint64 `json:"lost_not_known"`
}

// top counts changes by a name, in bounded memory: when there are too many names, those with the fewest are summed up.
type top struct {
	by     map[string]*ChangeTally
	others OtherChanges
	max    int
}

func (t *top) change(name []byte, gained, certain bool) {
	if len(name) > countedName { // it is not told apart from other long ones
		t.others.Number = max(t.others.Number, 1)
		t.others.change(gained, certain)
		return
	}
	c := t.by[string(name)]
	if c == nil {
		if t.by == nil {
			t.by = map[string]*ChangeTally{}
		}
		if len(t.by) >= 2*t.max {
			t.makeRoom()
		}
		c = &ChangeTally{}
		t.by[string(name)] = c
	}
	c.change(gained, certain)
}

// makeRoom sums up those with the fewest changes, so that at most max are left.
func (t *top) makeRoom() {
	var having [64]int // how many names have so many changes, or more
	for _, c := range t.by {
		having[min(c.all(), uint64(len(having)-1))]++
	}
	few, left := uint64(0), len(t.by)
	for ; left > t.max && few < uint64(len(having)-1); few++ {
		left -= having[few]
	}
	if left > t.max {
		t.keep(t.max)
		return
	}
	for name, c := range t.by {
		if c.all() < few {
			t.drop(name)
		}
	}
}

// drop sums up one name.
func (t *top) drop(name string) {
	t.others.Number++
	t.others.add(t.by[name])
	delete(t.by, name)
}

// keep sums up all but the n names with the most changes, and returns those in order.
func (t *top) keep(n int) []string {
	names := make([]string, 0, len(t.by))
	for name := range t.by {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.by[b].all(), t.by[a].all()), strings.Compare(a, b))
	})
	if len(names) <= n {
		return names
	}
	for _, name := range names[n:] {
		t.drop(name)
	}
	return names[:n]
}

func (t *top) rest() *OtherChanges {
	if t.others.Number == 0 {
		return nil
	}
	return &t.others
}

// summing is a DiffSummary being made.
type summing struct {
	DiffSummary
	d       *differ
	media   top
	groups  top
	tenants top
	causes  map[continuity.Cause]*CauseCount
	none    ChangeTally // without a group
}

// Bounds of what is counted by name while it is counted, and of what is listed.
const (
	changeNames   = 5000
	listedChanges = 100
)

func (s *summing) begin(d *differ) {
	s.d = d
	s.media.max, s.groups.max, s.tenants.max = changeNames, changeNames, changeNames
	s.causes = map[continuity.Cause]*CauseCount{}
	for i, src := range d.all {
		s.From = append(s.From, SourceAsOf{src.Name, d.a[i].asOf})
		s.To = append(s.To, SourceAsOf{src.Name, d.b[i].asOf})
	}
}

// record counts what is no event.
func (s *summing) record(r *record) {
	if r.Kind == journal.Message && !r.Duplicate {
		s.Messages++
		if r.Damage != event.None {
			s.Damaged++
		}
	}
	if r.Mark != continuity.NoMark {
		s.Marks++
	}
	if r.Duplicate || r.Gap.Cause == continuity.CauseNone {
		return
	}
	c := s.causes[r.Gap.Cause]
	if c == nil {
		c = &CauseCount{Cause: r.Gap.Cause.String()}
		s.causes[r.Gap.Cause] = c
	}
	c.Gaps++
	if r.Gap.Cause == continuity.PublisherRestart {
		s.Restarts++
	}
	switch r.Gap.Lost {
	case continuity.LostExactly:
		c.LostEventsMin += r.Gap.Min
		c.LostEventsMax += r.Gap.Min
	case continuity.LostBetween:
		c.LostEventsMin += r.Gap.Min
		c.LostEventsMax += r.Gap.Max
	default:
		c.NotKnown++
	}
}

// change counts one.
func (s *summing) change(l *ChangeLine) {
	gained, certain := l.change.gained, l.certain()
	s.ChangeTally.change(gained, certain)
	if l.change.first {
		s.Objects++
	}
	s.media.change([]byte(l.change.medium), gained, certain)
	s.tenants.change(l.pair.key(), gained, certain)
	if g := l.group(); g != nil {
		s.groups.change(g, gained, certain)
	} else {
		s.none.change(gained, certain)
	}
}

// key is the scope's name as JSON.
func (p *scopePair) key() []byte {
	if p.id == nil {
		p.id = mustJSON([]any{p.a.source, []byte(notNil(p.Backend)), []byte(notNil(p.Tenant))})
	}
	return p.id
}

func (s *summing) finish() {
	s.Media, s.Tenants, s.Groups, s.Gaps = []MediumChanges{}, []TenantChanges{}, []GroupChanges{}, []CauseCount{}
	for _, name := range []string{"cpu", "disk"} {
		s.Media = append(s.Media, MediumChanges{Medium: name, ChangeTally: *s.media.of(name)})
		delete(s.media.by, name)
	}
	for _, name := range s.media.keep(listedChanges) {
		s.Media = append(s.Media, MediumChanges{Medium: name, ChangeTally: *s.media.by[name]})
	}
	for _, name := range s.tenants.keep(listedChanges) {
		t := TenantChanges{ChangeTally: *s.tenants.by[name]}
		var backend, tenant []byte
		if err := json.Unmarshal([]byte(name), &[]any{&t.Name.Source, &backend, &tenant}); err != nil {
			panic(err) // key wrote it
		}
		t.Name.Backend, t.Name.Tenant = notNil(backend), notNil(tenant)
		s.Tenants = append(s.Tenants, t)
	}
	for _, name := range s.groups.keep(listedChanges) {
		s.Groups = append(s.Groups, GroupChanges{Group: Bytes(name), ChangeTally: *s.groups.by[name]})
	}
	s.OtherMedia, s.OtherTenants, s.OtherGroups = s.media.rest(), s.tenants.rest(), s.groups.rest()
	if s.none.all() > 0 {
		s.WithoutGroup = &s.none
	}
	for _, c := range s.causes {
		s.Gaps = append(s.Gaps, *c)
	}
	slices.SortFunc(s.Gaps, func(a, b CauseCount) int { return strings.Compare(a.Cause, b.Cause) })
}

func (t *top) of(name string) *ChangeTally {
	if c := t.by[name]; c != nil {
		return c
	}
	return &ChangeTally{}
}
