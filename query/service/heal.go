package service

import (
	"context"
	"fmt"

	"github.com/kvjournal/kvjournal/index"
)

// A damaged index is computed anew by itself: at an open, when a question meets it, when a compaction does, and when the materializer does.
// Meanwhile what can be read goes on being answered, and what cannot is an error.

// wounded is a damage of the index that was met in one generation of it.
type wounded struct {
	generation uint64
	why        error
}

// damaged takes note of a damage of the index. It does not wait.
func (s *Service) damaged(why error) {
	x := s.index.Load()
	if x == nil {
		return // it is just being opened, which sees to it
	}
	select {
	case s.wounds <- wounded{x.Generation(), why}:
	default: // another is to be seen to already
	}
}

// Failed implements httpapi.Healer.
func (s *Service) Failed(err error) error {
	if !index.Damage(err) {
		return err
	}
	s.damaged(err)
	return fmt.Errorf("the index is damaged and is being computed anew, ask again in a while: %w", err)
}

// keepHealing computes the index anew whenever it is damaged, until ctx ends.
func (s *Service) keepHealing(ctx context.Context, x *index.Index) {
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-s.wounds:
			if err := s.heal(ctx, x, w); err != nil && ctx.Err() == nil {
				s.log.Error("computing the damaged index anew failed; `kvjournal rebuild` tries again", "error", err.Error())
			}
		}
	}
}

// heal computes the index anew, if that was not done since the damage was met.
func (s *Service) heal(ctx context.Context, x *index.Index, w wounded) error {
	s.healing.Lock()
	defer s.healing.Unlock()
	if x.Generation() != w.generation {
		return nil
	}
	s.log.Warn("the index is damaged; it is computed anew from the journal, recording goes on", "why", w.why.Error())
	if err := x.Rebuild(ctx, nil); err != nil {
		return err
	}
	s.log.Info("the index is whole again")
	return nil
}

// follow keeps the index behind the journal, over damages of it.
func (s *Service) follow(ctx context.Context, x *index.Index) error {
	for {
		generation := x.Generation()
		err := x.Follow(ctx)
		if !index.Damage(err) {
			return err
		}
		if err := s.heal(ctx, x, wounded{generation, err}); err != nil {
			return err
		}
	}
}
