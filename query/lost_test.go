package query

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

// lostTail records two sources, the first with a master, loses the seven records behind the end, and records both again.
func lostTail(t *testing.T) (s *several, end uint64) {
	s = recordSeveral(t, *modelSeed+9, 2, 0)
	_, err := s.j.EnsureSource("s0", nil, []string{"http://master:9003"})
	s.must(err)
	end = s.j.Durable()
	s.close()
	s.j, err = journal.Open("data", nil, journal.Options{FS: s.fs, NoSealer: true, Indexed: journal.Known{{Offset: end + 7}}})
	s.must(err)
	s.x, err = index.Open(s.j, true, index.Options{FS: s.fs})
	s.must(err)
	s.e = &Engine{Journal: s.j, Index: s.x}
	g := s.j.NewGroup()
	for i := range s.streams {
		feed, err := recorder.NewFeed(s.j, s.sources[i].ID)
		s.must(err)
		feed.Begin(continuity.RecorderWasDown)
		for k := range s.streams[i].Records {
			_, err := feed.Add(g, &s.streams[i].Records[k], false)
			s.must(err)
		}
		feed.Save(g)
	}
	s.must(g.Commit())
	s.must(s.j.Sync())
	s.must(s.x.CatchUp(t.Context(), nil))
	return s, end
}

func (s *several) names() (out []Name) {
	for i := range s.streams {
		for _, o := range s.streams[i].Objects {
			n := Name{Source: s.sources[i].Name, Backend: Bytes(o.Backend), Tenant: Bytes(o.Tenant), Key: Bytes(o.Key)}
			if o.Backend == "" {
				n.Backend = Bytes{}
			}
			out = append(out, n)
		}
	}
	return out
}

// TestNothingIsSureAtALoss: each source is marked by a record of its own; at the first of them the loss is one of the others too.
func TestNothingIsSureAtALoss(t *testing.T) {
	s, end := lostTail(t)
	sure := 0
	for _, name := range s.names() {
		for at := end; at <= end+9; at++ {
			answers, err := s.e.Lookup(t.Context(), []Question{{name}}, When{Kind: AtOffset, Offset: at})
			if at > end && at <= end+7 {
				if !errors.Is(err, journal.ErrNotFound) {
					t.Fatalf("seed %d: at the lost offset %d: %v", s.seed, at, err)
				}
				continue
			}
			s.must(err)
			switch certain := answers[0].Certainty == Confirmed; {
			case at == end && certain:
				sure++
			case at > end && certain:
				t.Errorf("seed %d: %q of %s is sure at %d, behind what was lost from %d on: %+v", s.seed, name.Key, name.Source, at, end+1, answers[0])
			}
			if answers[0].AsOf.Offset != at {
				t.Errorf("as of %d, asked for %d", answers[0].AsOf.Offset, at)
			}
		}
	}
	if sure == 0 {
		t.Error("nothing was sure before the loss")
	}
}

var askedAt = regexp.MustCompile(`(?:--at|--from|--to) offset:(\d+)`)

// answerable fails the test where an offset that a text recommends cannot be asked for.
func (s *several) answerable(text string) (n int) {
	for _, m := range askedAt.FindAllStringSubmatch(text, -1) {
		at, err := strconv.ParseUint(m[1], 10, 64)
		s.must(err)
		if _, err := s.e.Lookup(s.t.Context(), []Question{{Name{Key: Bytes("k")}}}, When{Kind: AtOffset, Offset: at}); err != nil {
			s.t.Errorf("seed %d: %q is recommended: %v", s.seed, text, err)
		}
		n++
	}
	return n
}

// TestMomentInALoss: a moment that was lost is refused with what was lost, and what can be asked on both sides.
func TestMomentInALoss(t *testing.T) {
	s, end := lostTail(t)
	lost := fmt.Sprintf("offsets %d to %d were lost", end+1, end+7)
	for at := end + 1; at <= end+7; at++ {
		_, err := s.e.Lookup(t.Context(), []Question{{Name{Key: Bytes("k")}}}, When{Kind: AtOffset, Offset: at})
		if err == nil || !strings.Contains(err.Error(), lost) || s.answerable(err.Error()) != 2 {
			t.Errorf("at %d: %v", at, err)
		}
		if l := (*LostError)(nil); !errors.As(err, &l) || l.First != end+1 || l.Last != end+7 {
			t.Errorf("at %d the error says that %+v was lost", at, l)
		}
	}
	last := s.j.Durable()
	ask := func() error {
		_, err := s.e.Lookup(t.Context(), []Question{{Name{Key: Bytes("k")}}}, When{Kind: AtOffset, Offset: last + 3})
		return err
	}
	if err := ask(); !errors.As(err, new(*UsageError)) {
		t.Errorf("behind the end: %v", err)
	}
	s.e.LostEnd = &LostEnd{last + 1, last + 4}
	if err := ask(); err == nil || errors.As(err, new(*UsageError)) || !strings.Contains(err.Error(), fmt.Sprintf("offsets %d to %d are gone", last+1, last+4)) || s.answerable(err.Error()) != 1 {
		t.Errorf("in a lost end: %v", err)
	}
	stats, err := s.e.Stats(t.Context())
	s.must(err)
	if stats.LostEnd != s.e.LostEnd {
		t.Errorf("stats: %+v", stats.LostEnd)
	}
}

// TestWhyOfALoss: what our own disk lost is not said to be the master's doing, and each moment that is recommended can be asked for.
func TestWhyOfALoss(t *testing.T) {
	s, end := lostTail(t)
	lost := fmt.Sprintf("ffsets %d to %d", end+1, end+7)
	flagged, marked, recommended := 0, 0, 0
	for _, name := range s.names() {
		for _, at := range []uint64{end, end + 8, end + 9, end + 12, s.j.Durable()} {
			s.must(s.e.Why(t.Context(), name, When{Kind: AtOffset, Offset: at}, func(w *WhyOut) error {
				story := ""
				for _, l := range w.Story {
					story += l.Text + "\n"
				}
				for _, n := range w.Next {
					recommended += s.answerable(n.Command)
				}
				if strings.Contains(story+strings.Join(w.WrongIf, "\n"), "changed something without an event") || strings.Contains(story, "is known to change things") {
					t.Errorf("seed %d: at %d the master is blamed: %s", s.seed, at, story)
				}
				if w.Answer.Silent {
					flagged++
					if !strings.Contains(story, "lost on our own disk (o"+lost) {
						t.Errorf("seed %d: at %d, silent: %s", s.seed, at, story)
					}
				}
				if at > end && at <= end+9 {
					marked++
					if !strings.Contains(story, "The journal lost its o"+lost) || strings.Contains(story, "could not be decoded, or") {
						t.Errorf("seed %d: at %d: %s", s.seed, at, story)
					}
				}
				return nil
			}))
		}
	}
	if flagged == 0 || marked == 0 || recommended == 0 {
		t.Errorf("%d stories of a flagged epoch, %d at the loss, %d moments recommended", flagged, marked, recommended)
	}
}
