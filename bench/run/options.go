package run

import (
	"io"
	"slices"

	"github.com/kvjournal/kvjournal/bench/message"
)

// Workloads are the names of the two halves of a turn.
var Workloads = []string{"journal", "places"}

// Options of Contest. Counts are per round.
type Options struct {
	// Rounds is how often everything is done.
	Rounds int
	// Events of each shape, by its name.
	Events map[string]int
	// Objects is the number of live objects that a shape grows to: the hot set.
	Objects int
	// Acks is how many groups are waited for one by one, Gets how many messages are asked for by seq.
	Acks, Gets int
	// Lookups is how many single questions of a kind are asked.
	Lookups int
	// Seed selects the messages and the questions.
	Seed uint64
	// Contenders and Workloads to run; nil: all.
	Contenders, Workloads []string
	// Dir is where contenders write; it must be on the disk that is to be measured.
	Dir string
	// Unquiet does not wait for the disk before each measurement: for tests.
	Unquiet bool
	// Feed reaches a Feed of these options, for Growth: in another process, so that the memory of this one is that of what is measured.
	// nil: in this one.
	Feed func() (io.ReadWriteCloser, error)
	// Talk is told what is being done. nil: nobody is.
	Talk func(format string, args ...any)
}

func (o *Options) wants(list []string, name string) bool {
	return list == nil || slices.Contains(list, name)
}

func (o *Options) say(format string, args ...any) {
	if o.Talk != nil {
		o.Talk(format, args...)
	}
}

// sets makes the messages of all shapes that are asked for.
func (o *Options) sets() ([]*message.Set, error) {
	var out []*message.Set
	for _, shape := range message.Shapes {
		if o.Events[shape] <= 0 {
			continue
		}
		o.say("making %d events of shape %s", o.Events[shape], shape)
		s, err := message.Build(shape, o.Events[shape], o.Objects, o.Seed)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
