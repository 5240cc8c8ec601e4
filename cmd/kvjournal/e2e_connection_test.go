package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// as_of.live says that the source is connected, and nothing else does. While the publisher is gone, the default moment
// stays its last batch.
func TestAsOfWhileThePublisherIsGone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	endpoint := mooncaketest.Reserved(t)
	p, err := mooncaketest.Start(mooncaketest.Options{Bind: endpoint, Linger: patience, TellsSubscribed: true})
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			p.Kill()
		}
	}()
	rec := record(t, dir, endpoint)
	heard := func() {
		t.Helper()
		connected(t, dir, true)
		eventually(t, "the subscription arrives", func() bool { return p.Subscribed() })
	}
	heard()
	ask := func() query.Answer {
		t.Helper()
		return lookup(t, dir, "", []object{{"default", "k"}})[0]
	}
	if a := ask(); !a.AsOf.Live || a.AsOf.Offset != 0 || a.AsOf.AgeMs != nil || a.Certainty != query.Uncertain {
		t.Errorf("before the first batch: %s", printed(t, &a))
	}
	p.Enqueue(mooncaketest.Change{Type: 1, Tenant: "default", Key: "k", Medium: mooncaketest.CPU})
	eventually(t, "k is present", func() bool { return ask().Present })
	first := ask()
	if !first.AsOf.Live || first.AsOf.AgeMs == nil || *first.AsOf.AgeMs < 0 || first.AsOf.Time == nil || first.Media["cpu"].Certainty != query.Confirmed {
		t.Errorf("behind the first batch: %s", printed(t, &first))
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	closed = true
	connected(t, dir, false)
	quiet(t, dir)
	gone := ask()
	if gone.AsOf.Live || gone.AsOf.Offset != first.AsOf.Offset || gone.Media["cpu"].Certainty != query.Confirmed {
		t.Errorf("without a publisher: %s", printed(t, &gone))
	}
	if now := lookup(t, dir, "now", []object{{"default", "k"}})[0]; now.Certainty != query.Uncertain {
		t.Errorf("now is confirmed without a publisher: %s", printed(t, &now))
	}
	if all := gapLines(t, dir); len(all) > 0 {
		t.Errorf("a broken connection at the end is a gap: %q", all)
	}

	if p, err = mooncaketest.Start(mooncaketest.Options{Bind: endpoint, Linger: patience, TellsSubscribed: true}); err != nil {
		t.Fatal(err)
	}
	closed = false
	heard()
	if back := ask(); !back.AsOf.Live || back.AsOf.Offset != first.AsOf.Offset {
		t.Errorf("with a new publisher that sent nothing: %s", printed(t, &back))
	}
	p.Enqueue(mooncaketest.Change{Type: 1, Tenant: "default", Key: "other", Medium: mooncaketest.CPU})
	eventually(t, "the restart is seen", func() bool { return len(gapLines(t, dir)) == 1 })
	eventually(t, "the restart is indexed", func() bool { return ask().AsOf.Offset > first.AsOf.Offset })
	if a := ask(); !a.Present || a.Certainty != query.Uncertain || a.Media["cpu"].Doubt.Cause != "publisher_restart" {
		t.Errorf("behind a restart: %s", printed(t, &a))
	}
	if a := lookup(t, dir, "", []object{{"default", "other"}})[0]; a.Media["cpu"].Certainty != query.Confirmed || a.Media["cpu"].Evidence.Epoch != 2 {
		t.Errorf("announced by the new process from its seq 1: %s", printed(t, &a))
	}
	rec.stop(t)
	if a := ask(); a.AsOf.Live {
		t.Errorf("live, at rest: %s", printed(t, &a))
	}
}

func printed(t *testing.T, a *query.Answer) string {
	t.Helper()
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
