package oracle

import (
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// Fact is the kind of a record of the journal's own: it says nothing of the stream, and takes an offset.
const Fact = capture.Kind(0)

// Place names a medium of an object.
type Place struct {
	Object Object
	Medium string
}

// Reading is a reading of the master that held (R9): between the records Begun and Through nothing broke.
type Reading struct {
	Begun, Through, Ended uint64
	// Covers are scopes, each as an Object without a key.
	Covers []Object
	// Found are the corrections: what the master has otherwise than was known at Begun.
	Found map[Place]bool
	// Unsaid are the exceptions.
	Unsaid map[Object]bool
	// Silent: it contradicted what was confirmed, and so flags the epoch (R11).
	Silent bool
}

// Read takes a reading whose end is the newest record. Corrections become events at Begun, where no other event is.
func (o *Oracle) Read(r *Reading) {
	o.readings = append(o.readings, r)
	for p, present := range r.Found {
		at := placement{p.Object, p.Medium}
		list := o.events[at]
		i := slices.IndexFunc(list, func(h happening) bool { return h.offset > r.Begun })
		if i < 0 {
			i = len(list)
		}
		o.events[at] = slices.Insert(list, i, happening{offset: r.Begun, stored: present, read: true})
		if o.media[p.Object] == nil {
			o.media[p.Object] = map[string]bool{}
		}
		o.media[p.Object][p.Medium] = true
	}
	if r.Silent {
		o.Flag()
	}
}

// Flag flags the current epoch: its master changes things without an event (R11).
func (o *Oracle) Flag() {
	if o.flagged == nil {
		o.flagged = map[uint64]bool{}
	}
	o.flagged[o.last.epoch] = true
}

// End is the offset of the newest record.
func (o *Oracle) End() uint64 { return uint64(len(o.facts) - 1) }

// Readings are those that were taken.
func (o *Oracle) Readings() []*Reading { return o.readings }

// Whole reports whether the records behind h are one connection and one epoch, without a mark and without a `cleared`, and none of that
// hangs in the air now.
func (o *Oracle) Whole(h uint64) bool {
	now := uint64(len(o.facts) - 1)
	if o.window.open || o.facts[h].doubt != o.facts[now].doubt || o.facts[h].epoch != o.facts[now].epoch || o.facts[h].links != o.facts[now].links {
		return false
	}
	for _, list := range o.clears {
		for _, c := range list {
			if c.offset > h {
				return false
			}
		}
	}
	return true
}

// Touched reports whether an object had an event of its own in (h, e].
func (o *Oracle) Touched(obj Object, h, e uint64) bool {
	for m := range o.media[obj] {
		for _, ev := range o.events[placement{obj, m}] {
			if !ev.read && h < ev.offset && ev.offset <= e {
				return true
			}
		}
	}
	return false
}

// speaks reports whether what was known of an object at h is the master's word too.
func (o *Oracle) speaks(r *Reading, obj Object) bool {
	covered := false
	for _, c := range r.Covers {
		covered = covered || c.Backend == obj.Backend && c.Tenant == obj.Tenant
	}
	return covered && !r.Unsaid[obj] && !strings.Contains(obj.Key, "\n") && !o.Touched(obj, r.Begun, r.Through)
}

// holds reports whether what a reading says of a medium still stands behind offset: neither an event nor a `cleared` has changed it since.
func (o *Oracle) holds(r *Reading, offset uint64, p placement) bool {
	if r.Begun > offset || !o.speaks(r, p.object) {
		return false
	}
	for _, h := range o.events[p] {
		if r.Begun < h.offset && h.offset <= offset {
			return false
		}
	}
	if present, _ := o.look(r.Begun, p); present {
		for _, c := range o.clears[p.object.scope()] {
			if r.Begun < c.offset && c.offset <= offset {
				return false
			}
		}
	}
	return true
}

// sure reports whether the last known state of a medium behind offset is confirmed, were the moment itself proven.
func (o *Oracle) sure(offset uint64, p placement) bool {
	present, evidence := o.look(offset, p)
	doubt := o.facts[offset].doubt
	confirmed := evidence > doubt
	for _, r := range o.readings {
		confirmed = confirmed || r.Begun > doubt && o.holds(r, offset, p)
	}
	if !confirmed || !present || !o.flagged[o.facts[offset].epoch] {
		return confirmed
	}
	// A silent master: only its own word, for its own moment.
	for _, r := range o.readings {
		if r.Begun > doubt && r.Begun <= offset && offset <= r.Through && (o.holds(r, offset, p) || evidence == r.Begun) {
			return true
		}
	}
	return false
}

// EpochAt is the epoch behind a record.
func (o *Oracle) EpochAt(offset uint64) uint64 { return o.facts[offset].epoch }
