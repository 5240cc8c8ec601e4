package message

import (
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// place is an object and a medium.
type place struct{ tenant, key, medium string }

// What the messages say is what the set says is there, the groups hold consecutive messages, and equal seeds give equal sets.
func TestSet(t *testing.T) {
	for _, shape := range Shapes {
		t.Run(shape, func(t *testing.T) {
			set, err := Build(shape, 60_000, 400, 5)
			if err != nil {
				t.Fatal(err)
			}
			at := map[place]bool{}
			var b event.Batch
			events := 0
			for i, m := range set.BySeq() {
				if b.Scan(m.Frames); b.Damage != 0 || b.Seq != uint64(i)+1 || m.Seq != b.Seq || m.Time != b.Time || m.Events != len(b.Events) {
					t.Fatalf("message %d: %+v", i+1, b)
				}
				events += len(b.Events)
				for k := range b.Events {
					apply(at, &b.Events[k])
				}
			}
			if events != set.Events || events < 60_000 {
				t.Errorf("%d events, the set says %d", events, set.Events)
			}
			n := 0
			for _, o := range set.Objects {
				for medium, there := range map[string]bool{"cpu": o.CPU, "disk": o.Disk} {
					if there {
						n++
					}
					if at[place{o.Tenant, o.Key, medium}] != there {
						t.Errorf("%s of %s on %s: the messages say other than the master", o.Key, o.Tenant, medium)
					}
				}
			}
			if n != len(at) {
				t.Errorf("the messages left %d places, the master has %d", len(at), n)
			}
			again, err := Build(shape, 60_000, 400, 5)
			if err != nil {
				t.Fatal(err)
			}
			if again.Raw != set.Raw || again.Messages != set.Messages || len(again.Objects) != len(set.Objects) {
				t.Error("the same seed gives another set")
			}
		})
	}
}

func apply(at map[place]bool, e *event.Event) {
	switch p := (place{string(e.Tenant), string(e.Key), string(e.Medium)}); e.Type {
	case event.Stored:
		at[p] = true
	case event.Removed:
		delete(at, p)
	case event.Cleared:
		for p := range at {
			if p.tenant == string(e.Tenant) {
				delete(at, p)
			}
		}
	}
}
