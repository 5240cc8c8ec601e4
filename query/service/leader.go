package service

import (
	"context"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// ask asks a master of a group for its role, and tells the recorder if it leads anew: its messages then begin a new epoch, though
// their numbers may go on where those of its last life ended.
func (p *poller) ask(ctx context.Context) {
	h, err := p.client.Health(ctx)
	if err != nil || !h.Ready() {
		return // the polls say what is wrong; the view that it led under stays known
	}
	p.view.Store(h.ViewVersion)
	delivers := p.rec.Delivers(p.source.ID)
	if delivers == p.endpoint || !leadsAnew(h.ViewVersion, p.viewOf(delivers)) {
		return
	}
	told := false
	err = p.rec.Do(ctx, p.source.ID, func(f *recorder.Feed, _ *journal.Group) error {
		// Who delivers may have changed since; then the next answer decides.
		if f.Delivers() == delivers {
			told = f.Leads(p.endpoint)
		}
		return nil
	})
	if err == nil && told {
		p.log.Info("the master behind another endpoint leads the group now", "source", p.source.Name, "master", p.client.URL(), "view", h.ViewVersion)
	}
}

// viewOf is the newest view under which the master behind an endpoint said that it leads; 0: it never did.
func (p *poller) viewOf(endpoint int) uint64 {
	for _, q := range p.group {
		if q.endpoint == endpoint {
			return q.view.Load()
		}
	}
	return 0
}

// leadsAnew reports whether a master that says it leads under a view does so behind the one that delivers, which led under
// another. Both may say that they lead for a while, and one that tells no view (0) cannot be compared.
func leadsAnew(view, delivering uint64) bool { return delivering != 0 && view > delivering }
