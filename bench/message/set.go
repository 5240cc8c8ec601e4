package message

import (
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// Set is a stream of some length, in memory, so that making it is not measured.
type Set struct {
	Shape  string
	Groups [][]Message
	// Messages, Events and Raw count the messages, their events, and the bytes of their payloads.
	Messages, Events int
	Raw              int64
	// Objects are the objects that are live at the end.
	Objects []mooncaketest.Object
	// First and Last are the publisher's times, Unix ms.
	First, Last int64
}

// Build makes a set of at least that many events.
func Build(shape string, events, objects int, seed uint64) (*Set, error) {
	s, err := NewStream(shape, objects, seed)
	if err != nil {
		return nil, err
	}
	set := &Set{Shape: shape, First: Begin}
	for set.Events < events {
		set.add(s.Group())
	}
	if rest := s.Finish(); len(rest) > 0 {
		set.add(rest)
	}
	set.Objects = s.Objects()
	return set, nil
}

func (s *Set) add(group []Message) {
	s.Groups = append(s.Groups, group)
	for i := range group {
		s.Messages++
		s.Events += group[i].Events
		s.Raw += int64(len(group[i].Payload()))
		s.Last = group[i].Time
	}
}

// BySeq returns the message of that seq.
func (s *Set) BySeq() []*Message {
	all := make([]*Message, 0, s.Messages)
	for _, g := range s.Groups {
		for i := range g {
			all = append(all, &g[i])
		}
	}
	return all
}
