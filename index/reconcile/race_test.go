package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// A world with objects of every sort, all in doubt: present and absent, on one medium and on both, known and not, askable and not.
func doubtful(t *testing.T) (*world, []name) {
	w := newWorld(t)
	w.live()
	w.do(stored("both", cpu), stored("both", disk), stored("cpu", cpu), stored("disk", disk), stored("went", cpu), removed("went", cpu),
		stored("a,b", cpu), stored("x\ny", cpu), stored("bad\xff", disk), stored("lost-removal", cpu), stored("evicted", cpu))
	w.publish()
	w.do(removed("lost-removal", cpu), stored("lost-store", disk), stored("evicted", disk), removed("evicted", cpu))
	w.take()
	w.send(true) // a message that never comes
	for range 2 {
		w.do(stored("sure", cpu))
		w.publish()
	}
	w.truth[name{event.DefaultTenant, "putting"}] = 0
	w.do(mooncaketest.Change{Type: event.Stored, Tenant: "other", Key: "both", Medium: cpu})
	w.publish()
	var names []name
	for _, k := range []string{"both", "cpu", "disk", "went", "a,b", "x\ny", "x", "y", "bad\xff", "lost-removal", "lost-store", "evicted", "sure", "putting", "never", "new"} {
		names = append(names, name{event.DefaultTenant, k})
	}
	return w, append(names, name{"other", "both"}, name{"other", "never"})
}

// removeAll empties the tenant as masters do: one object after the other, and a clear at the end, which what was stored meanwhile survives.
func removeAll(w *world) {
	var changes []mooncaketest.Change
	for n, m := range w.truth {
		if n.tenant == event.DefaultTenant && m != 0 {
			changes = append(changes, removed(n.key, cpu), removed(n.key, disk))
		}
	}
	w.do(append(changes, stored("new", cpu), clearedAll(event.DefaultTenant))...)
}

func clearedAll(tenant string) mooncaketest.Change {
	return mooncaketest.Change{Type: event.Cleared, Tenant: tenant}
}

// actions are what may happen at one moment of a reading. void: a reading in which it happens behind its begin must not hold.
var actions = []struct {
	name string
	void bool
	do   func(w *world)
}{
	{"nothing", false, func(*world) {}},
	{"stored", false, func(w *world) { w.do(stored("new", cpu)); w.publish() }},
	{"stored on another medium", false, func(w *world) { w.do(stored("cpu", disk)); w.publish() }},
	{"stored, told late", false, func(w *world) { w.do(stored("new", cpu), stored("lost-removal", disk)) }},
	{"stored, told at once, counted late", false, func(w *world) { w.do(stored("new", cpu)); w.take(); w.send(false); w.arrive() }},
	{"stored, numbered, on the wire", false, func(w *world) { w.do(stored("new", cpu)); w.take(); w.send(false) }},
	{"stored, taken", false, func(w *world) { w.do(stored("new", cpu)); w.take() }},
	{"removed", false, func(w *world) { w.do(removed("both", cpu), removed("disk", disk)); w.publish() }},
	{"removed, told late", false, func(w *world) { w.do(removed("both", cpu), removed("disk", disk), removed("cpu", cpu)) }},
	{"stored and removed", false, func(w *world) { w.do(stored("new", cpu)); w.publish(); w.do(removed("new", cpu)) }},
	{"removed and stored, told late", false, func(w *world) { w.do(removed("cpu", cpu), stored("cpu", cpu)) }},
	{"upserted", false, func(w *world) { w.do(removed("both", cpu), removed("both", disk), stored("both", cpu)); w.publish() }},
	{"put ended, told late", false, func(w *world) { w.do(stored("putting", cpu)) }},
	{"a full batch", false, func(w *world) {
		for i := range 63 {
			w.do(stored(fmt.Sprint("full", i), cpu))
		}
		w.do(removed("both", cpu), stored("both", cpu)) // cut in the middle
		w.take()
		w.send(false)
		w.arrive()
	}},
	{"a loss", true, func(w *world) { w.do(removed("both", cpu)); w.take(); w.send(true); w.traffic() }},
	{"a loss that shows late", true, func(w *world) { w.do(removed("both", cpu)); w.take(); w.send(true) }},
	{"a drop of the queue", true, func(w *world) {
		w.limit = len(w.queue) + 1
		w.do(removed("both", cpu), removed("both", cpu))
		w.limit = 1 << 16
	}},
	{"a restart", true, func(w *world) { w.restart(); w.arrive(); w.connect() }},
	{"a restart that shows late", true, func(w *world) { w.restart() }},
	{"a restart, and it lives on", true, func(w *world) {
		w.restart()
		w.arrive()
		w.connect()
		w.do(stored("both", disk))
		w.publish()
	}},
	{"a reconnect", true, func(w *world) { w.disconnect(9); w.arrive(); w.connect(); w.arrive() }},
	{"a disconnect", true, func(w *world) { w.disconnect(9); w.arrive() }},
	{"a clear", true, func(w *world) { removeAll(w); w.publish() }},
	{"a clear, told late", true, removeAll},
	{"a clear of another tenant", false, func(w *world) {
		w.do(mooncaketest.Change{Type: event.Removed, Tenant: "other", Key: "both", Medium: cpu}, clearedAll("other"))
		w.publish()
	}},
	{"another backend", true, func(w *world) { w.backend = "b1"; w.do(stored("moved", cpu)); w.publish(); w.backend = backend0 }},
	{"the master goes", true, func(w *world) { w.off = true }},
	{"the master becomes a standby", true, func(w *world) { w.standby = true }},
}

// Each action at each moment of a reading: whatever the reading comes to, nothing that is confirmed is wrong afterwards. With traffic
// behind it, and without.
func TestRaces(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var moments []string
		w, _ := doubtful(t)
		w.hook = func(at string) { moments = append(moments, at) }
		finish(w, quiet)
		if _, err := w.runner().once(context.Background(), Request{}); err != nil {
			t.Fatal(err)
		}
		begun := slices.Index(moments, "begun")
		read := begun + slices.Index(moments[begun:], "status") // the reading is complete
		for _, a := range actions {
			for i, at := range moments {
				if at == "media/key" && i%12 != 0 {
					continue // one key is as another
				}
				t.Run(fmt.Sprintf("quiet=%v/%s/%d-%s", quiet, a.name, i, at), func(t *testing.T) {
					race(t, quiet, i, i >= begun && i < read && a.void, a.do)
				})
			}
		}
	}
}

// race does something at the n-th moment of a reading.
func race(t *testing.T, quiet bool, n int, void bool, do func(*world)) {
	w, names := doubtful(t)
	i := 0
	w.hook = func(string) {
		if i == n {
			do(w)
		}
		i++
	}
	finish(w, quiet)
	_, err := w.runner().once(context.Background(), Request{})
	w.hook = func(string) {}
	if err == nil && void {
		t.Error("it holds, though it must not")
	}
	if !expected(err) {
		t.Fatal(err)
	}
	w.settleDown()
	w.check("afterwards", names)
	if err == nil {
		return
	}
	// The next one resolves what the first could not.
	w.off, w.standby = false, false
	finish(w, quiet)
	w.now = w.now.Add(worldPause)
	if _, err := w.runner().once(context.Background(), Request{}); err != nil {
		if errors.Is(err, ErrBackend) {
			return
		}
		t.Fatal("the next one: ", err)
	}
	w.settleDown()
	if sure := w.check("after the next one", names); sure < 20 {
		t.Errorf("only %d media are confirmed", sure)
	}
}

// expected: what a reading may end with whatever happens.
func expected(err error) bool {
	var admin *AdminError
	return err == nil || errors.As(err, &admin) || errors.Is(err, ErrBroken) || errors.Is(err, ErrDisconnected) || errors.Is(err, ErrBackend) || errors.Is(err, ErrNoEnd)
}
