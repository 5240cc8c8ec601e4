package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/journal/recorder"
)

// The log tells of losses: of a source's first at once (at the next look), then at most one line in lossLogEvery, of all that came since.
const (
	lossLookEvery = time.Second
	lossLogEvery  = time.Minute
)

// lossLog decides when the losses of one source are worth a line. The zero value has said nothing yet.
type lossLog struct {
	at   time.Time // of the last line; zero: none
	said []recorder.FaultCount
}

// lossNews is what came since the last line.
type lossNews struct {
	// Causes tells how many losses of which cause, the most first.
	Causes string
	// Losses are lines of `gaps`; Missing messages, and the events that they had at least and at most, where that is known.
	Losses, Missing, LostMin, LostMax uint64
}

// next takes what was counted of the source in this run, a count per cause, and returns whether to say what is new. last: there is no later chance.
func (l *lossLog) next(now time.Time, counted []recorder.FaultCount, last bool) (lossNews, bool) {
	if !l.at.IsZero() && now.Sub(l.at) < lossLogEvery && !last {
		return lossNews{}, false
	}
	var n lossNews
	var causes []recorder.FaultCount
	for _, c := range counted {
		for i := range l.said {
			if was := &l.said[i]; was.Cause == c.Cause {
				c.Gaps, c.Missing, c.LostMin, c.LostMax = c.Gaps-was.Gaps, c.Missing-was.Missing, c.LostMin-was.LostMin, c.LostMax-was.LostMax
			}
		}
		if c.Gaps == 0 {
			continue // a mark alone is no loss
		}
		n.Losses, n.Missing, n.LostMin, n.LostMax = n.Losses+c.Gaps, n.Missing+c.Missing, n.LostMin+c.LostMin, n.LostMax+c.LostMax
		causes = append(causes, c)
	}
	if n.Losses == 0 {
		return lossNews{}, false
	}
	slices.SortFunc(causes, func(a, b recorder.FaultCount) int {
		return cmp.Or(cmp.Compare(b.Gaps, a.Gaps), cmp.Compare(a.Cause, b.Cause))
	})
	words := make([]string, len(causes))
	for i, c := range causes {
		words[i] = fmt.Sprintf("%d %s", c.Gaps, c.Cause)
	}
	n.Causes = strings.Join(words, ", ")
	l.at, l.said = now, slices.Clone(counted)
	return n, true
}

// args are the line's, for slog: what is not known is left out.
func (n *lossNews) args() []any {
	args := []any{"losses", n.Losses, "causes", n.Causes}
	if n.Missing > 0 {
		args = append(args, "missing_messages", n.Missing)
	}
	if n.LostMax > 0 {
		args = append(args, "lost_events_least", n.LostMin, "lost_events_most", n.LostMax)
	}
	return args
}

// keepTellingLosses logs losses until ctx ends, which is when the recorder has ended.
func (s *Service) keepTellingLosses(ctx context.Context) {
	t := time.NewTicker(lossLookEvery)
	defer t.Stop()
	logs := map[uint32]*lossLog{}
	for _, src := range s.recorded {
		logs[src.ID] = &lossLog{}
	}
	for last := false; ; {
		counted := map[uint32][]recorder.FaultCount{}
		for _, c := range s.rec.Tally().Faults() {
			counted[c.Source] = append(counted[c.Source], c)
		}
		for _, src := range s.recorded {
			if n, say := logs[src.ID].next(time.Now(), counted[src.ID], last); say {
				args := append([]any{"source", src.Name}, n.args()...)
				s.log.Warn("the stream has losses", append(args, "durable_offset", s.journal.Durables().Durable, "look", "kvjournal gaps")...)
			}
		}
		if last {
			return
		}
		select {
		case <-ctx.Done():
			last = true
		case <-t.C:
		}
	}
}
