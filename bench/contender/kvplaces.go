package contender

import (
	"context"
	"errors"
	"fmt"

	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// kvPlaces is kvjournal with its index, which follows the journal while groups are appended, on a goroutine of its own as in a
// recorder. Its answers are whole ones: with certainty, evidence and doubts.
type kvPlaces struct {
	*kvJournal
	x         *index.Index
	engine    query.Engine
	asker     *query.Asker
	stop      context.CancelFunc // nil: nothing follows
	done      chan error
	questions []query.Question
}

func openKVPlaces(dir string) (Places, error) {
	kv, err := newKV(dir, index.KnownTo(dir, index.Options{}))
	if err != nil {
		return nil, err
	}
	x, err := openKVIndex(kv.j)
	if err != nil {
		return nil, errors.Join(err, kv.Close())
	}
	p := &kvPlaces{kvJournal: kv, x: x, engine: query.Engine{Journal: kv.j, Index: x}}
	p.asker = p.engine.Asker()
	return p, nil
}

func (p *kvPlaces) Append(group []message.Message) error {
	p.follow()
	return p.kvJournal.Append(group)
}

func (p *kvPlaces) follow() {
	if p.stop != nil {
		return
	}
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	p.done = make(chan error, 1)
	go func() { p.done <- p.x.Follow(ctx) }()
}

// rest ends the following.
func (p *kvPlaces) rest() error {
	if p.stop == nil {
		return nil
	}
	p.stop()
	p.stop = nil
	if err := <-p.done; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (p *kvPlaces) CaughtUp() error {
	if err := p.Sync(); err != nil {
		return err
	}
	if err := p.rest(); err != nil {
		return err
	}
	return p.x.CatchUp(context.Background(), nil)
}

func (p *kvPlaces) Settle() error {
	if err := p.CaughtUp(); err != nil {
		return err
	}
	return errors.Join(p.kvJournal.Settle(), p.x.Flush(), p.x.Settle(context.Background()))
}

func (p *kvPlaces) Needed() uint64 { return p.kvJournal.Needed() + p.x.Bytes() }

func (p *kvPlaces) Close() error {
	return errors.Join(p.rest(), p.x.Close(), p.kvJournal.Close())
}

func (p *kvPlaces) Rebuild() error { return p.x.Rebuild(context.Background(), nil) }

func (p *kvPlaces) name(o Object) query.Name {
	return query.Name{
		Source: kvSource, Backend: query.Bytes(mooncaketest.DefaultBackendID), Tenant: query.Bytes(o.Tenant), Key: query.Bytes(o.Key),
	}
}

func (p *kvPlaces) Now(o Object) (Media, error) { return p.ask(o, query.When{}) }

func (p *kvPlaces) At(o Object, ms int64) (Media, error) {
	return p.ask(o, query.When{Kind: query.AtTime, Ms: ms})
}

func (p *kvPlaces) ask(o Object, w query.When) (Media, error) {
	p.questions = append(p.questions[:0], query.Question{Name: p.name(o)})
	answers, err := p.asker.Lookup(context.Background(), p.questions, w)
	if err != nil {
		return 0, err
	}
	return mediaOf(answers[0]), nil
}

func (p *kvPlaces) NowMany(dst []Media, objects []Object) ([]Media, error) {
	p.questions = p.questions[:0]
	for _, o := range objects {
		p.questions = append(p.questions, query.Question{Name: p.name(o)})
	}
	answers, err := p.asker.Lookup(context.Background(), p.questions, query.When{})
	for _, a := range answers {
		dst = append(dst, mediaOf(a))
	}
	return dst, err
}

func mediaOf(a *query.Answer) (m Media) {
	if a.Media["cpu"].State == query.Present {
		m |= CPU
	}
	if a.Media["disk"].State == query.Present {
		m |= Disk
	}
	return m
}

func (p *kvPlaces) History(o Object) (int, error) {
	n := 0
	err := p.engine.History(context.Background(), &query.HistoryAsk{Name: p.name(o)}, nil, func(v any) error {
		line, ok := v.(*query.HistoryLine)
		if !ok {
			return fmt.Errorf("a history told %T", v)
		}
		if line.Kind == query.KindStored || line.Kind == query.KindRemoved {
			n++
		}
		return nil
	})
	return n, err
}

func (p *kvPlaces) AppendOnly(groups [][]message.Message) error {
	if err := p.rest(); err != nil {
		return err
	}
	for _, g := range groups {
		if err := p.kvJournal.Append(g); err != nil {
			return err
		}
	}
	return p.Sync()
}
