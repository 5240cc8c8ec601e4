package mooncaketest

import (
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
)

// Messages of any sizes hold the same events as messages of one size, and behind the rest Objects is what they told.
func TestTrafficNextOf(t *testing.T) {
	o := StoreOptions{Seed: 3, Objects: 200}
	even, odd := NewTraffic(o, 1, 1), NewTraffic(o, 64, 1)
	at := map[Object]bool{}
	var a, b event.Batch
	take := func(n int) {
		frames, _ := odd.NextOf(n)
		if b.Scan(frames); len(b.Events) != n {
			t.Fatalf("%d events, asked for %d", len(b.Events), n)
		}
		for i := range b.Events {
			one, _ := even.Next()
			a.Scan(one)
			e, same := &b.Events[i], &a.Events[0]
			if e.ID != same.ID || e.Type != same.Type || string(e.Key) != string(same.Key) || string(e.Medium) != string(same.Medium) {
				t.Fatalf("event %d is another one", e.ID)
			}
			k := Object{Tenant: string(e.Tenant), Key: string(e.Key), CPU: string(e.Medium) == CPU, Disk: string(e.Medium) == Disk}
			if delete(at, k); e.Type == event.Stored {
				at[k] = true
			}
		}
	}
	for i := range 500 {
		take(1 + i*7%BatchEvents)
	}
	for odd.Rest() > 0 {
		take(min(odd.Rest(), BatchEvents))
	}
	n := 0
	for o := range odd.Objects() {
		for _, k := range []Object{{Tenant: o.Tenant, Key: o.Key, CPU: true}, {Tenant: o.Tenant, Key: o.Key, Disk: true}} {
			there := k.CPU && o.CPU || k.Disk && o.Disk
			if at[k] != there {
				t.Errorf("%+v: the messages say %v", k, at[k])
			}
			if there {
				n++
			}
		}
	}
	if n != len(at) || n == 0 {
		t.Errorf("the messages left %d places, the store has %d", len(at), n)
	}
}
