package run

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/rpc"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/message"
)

// A growth's messages are made in another process, so that the memory of this one is that of what is measured. The two talk net/rpc.

// Feed makes the messages of a mixed day. Its methods are remote ones.
type Feed struct {
	stream *message.Stream
	seen   seenObjects
	seed   uint64
	last   int64
}

// NewFeed begins a day.
func NewFeed(o *Options) (*Feed, error) {
	stream, err := message.NewStream("day", o.Objects, o.Seed)
	return &Feed{stream: stream, seen: seenObjects{rng: rand.New(rand.NewPCG(o.Seed, 4))}, seed: o.Seed}, err
}

// Serve answers on conn until its other end is closed.
func (f *Feed) Serve(conn io.ReadWriteCloser) error {
	s := rpc.NewServer()
	if err := s.Register(f); err != nil {
		return err
	}
	s.ServeConn(conn)
	return nil
}

// Groups makes groups of at least that many events. What the master holds behind them is what they told.
func (f *Feed) Groups(events int, out *[][]message.Message) error {
	for made := 0; made < events; {
		group := f.stream.Group()
		for i := range group {
			made += group[i].Events
			f.seen.add(&group[i])
		}
		*out = append(*out, group)
	}
	if rest := f.stream.Finish(); len(rest) > 0 {
		*out = append(*out, rest)
	}
	group := (*out)[len(*out)-1]
	f.last = group[len(group)-1].Time
	return nil
}

// Questions are some of each kind about what was made.
type Questions struct{ Hits, Misses, Hot, Uniform []Question }

// Question asks where an object was at a moment, publisher time in ms; of a hit, Want is where it is now.
type Question struct {
	Object contender.Object
	MS     int64
	Want   contender.Media
}

// Questions makes up n of each kind.
func (f *Feed) Questions(n int, out *Questions) error {
	if len(f.seen.kept) == 0 {
		return errors.New("nothing was made yet")
	}
	a, live := newAsker(f.seed, message.Begin, f.last), f.stream.Objects()
	*out = Questions{a.hits(n, live), a.misses(n), a.hot(n, live), a.uniform(n, f.seen.kept)}
	return nil
}

// local serves a feed in this process.
func local(o *Options) (io.ReadWriteCloser, error) {
	f, err := NewFeed(o)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	go f.Serve(far)
	return near, nil
}
