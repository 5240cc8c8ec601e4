package query

import (
	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/journal/event"
)

// capturer turns the journal's records of one source into those of a capture, so that who imports it claims no more than the
// journal does. It plays the importer: the state that an import would have behind what was given so far tells how it would judge
// the next message, and where the journal's judgement was another, the connection records that bring it about come first.
//
//	Connected, Disconnected   as they are
//	RecorderStarted, TailLost a break: Disconnected and Connected; where the window of R5 is open, Connected, which ends it; at
//	                          the very beginning nothing
//	RecorderStopped           nothing: a recorder that listened until then lost nothing by it
//	Message                   as it is. Before it, if the window is open there and would not be, Disconnected; if it would be open
//	                          and is not, Connected; if the journal saw a break without a record (two captures imported one after the
//	                          other), Disconnected and Connected
//
// Of the causes recorder_down becomes disconnected, and recorder_slow transport; all numbers stay.
type capturer struct {
	f     func(*capture.Record) error
	state continuity.State
	scan  event.Batch
	kept  [2][][]byte // the state compares a message with the one before it
	begun bool
}

func (c *capturer) record(r *record) error {
	switch r.Kind {
	case journal.Connected:
		return c.connection(capture.Connected, r.Received)
	case journal.Disconnected:
		return c.connection(capture.Disconnected, r.Received)
	case journal.RecorderStarted, journal.TailLost:
		if !c.state.Window {
			if !c.begun {
				return nil
			}
			if err := c.connection(capture.Disconnected, r.Received); err != nil {
				return err
			}
		}
		return c.connection(capture.Connected, r.Received)
	case journal.Message:
		return c.message(r)
	}
	return nil
}

// connection gives a record of the connection.
func (c *capturer) connection(kind capture.Kind, received int64) error {
	if kind == capture.Connected {
		c.state.Connects()
	} else {
		c.state.Disconnects()
	}
	return c.f(&capture.Record{Kind: kind, Received: received})
}

func (c *capturer) message(r *record) error {
	frames, err := r.Frames()
	if err != nil {
		return err
	}
	c.scan.Scan(frames)
	for _, kind := range c.needed(r, frames) {
		if err := c.connection(kind, r.Received); err != nil {
			return err
		}
	}
	c.kept[0], c.kept[1] = capture.CopyFrames(c.kept[1], frames), c.kept[0]
	c.state.Message(&c.scan, c.kept[0], r.Received, false)
	c.begun = true
	return errUnwritable(r.Offset, c.f(&capture.Record{Kind: capture.Message, Received: r.Received, Frames: frames}))
}

var (
	windowEnds   = []capture.Kind{capture.Connected}
	windowBegins = []capture.Kind{capture.Disconnected}
	newBreak     = []capture.Kind{capture.Disconnected, capture.Connected}
)

// needed are the connection records without which an importer would judge the message otherwise.
func (c *capturer) needed(r *record, frames [][]byte) []capture.Kind {
	try := [][]capture.Kind{nil, newBreak}
	switch {
	case r.InWindow:
		try = [][]capture.Kind{nil, windowBegins}
		if !c.state.Window {
			try = try[1:]
		}
	case c.state.Window:
		try = [][]capture.Kind{windowEnds}
	}
	if c.state.Seq == 0 { // whatever came before it, it is the first now
		return try[0]
	}
	for _, kinds := range try {
		s := c.state
		for _, k := range kinds {
			if k == capture.Connected {
				s.Connects()
			} else {
				s.Disconnects()
			}
		}
		v := s.Message(&c.scan, frames, r.Received, false)
		if sameJudgement(&v, &r.Verdict) {
			return kinds
		}
	}
	return try[len(try)-1]
}

// sameJudgement reports whether an importer's verdict says what the journal's does, but for epochs and times, which depend on where a span
// begins.
func sameJudgement(v, was *continuity.Verdict) bool {
	return v.Duplicate == was.Duplicate && v.InWindow == was.InWindow && v.Follows == was.Follows && captured(v.Gap.Cause) == captured(was.Gap.Cause)
}

// captured is what a capture makes of a cause.
func captured(c continuity.Cause) continuity.Cause {
	switch c {
	case continuity.RecorderDown:
		return continuity.Disconnected
	case continuity.RecorderSlow:
		return continuity.Transport
	}
	return c
}
