package continuity

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/kvjournal/kvjournal/journal/event"
)

// TestScripts runs testdata/*.txt: scenarios of the rules, and what the state machine says of each step. After a change
// `go test ./journal/continuity -run TestScripts -rewrite` writes the new answers; review them by their diff.
//
// `run [times]` is one source, never heard of before. Its lines:
//
//	msg seq=N [ids=A[-B] | n=COUNT] [removed | cleared] [slow] [damaged] [at=DURATION] [notime] [received=DURATION]
//	                     ids: event_ids of its events; n: events without event_id; neither: no events
//	                     at: the batch's time, received: our clock, both since the beginning of the scenario
//	damaged [seq=N]      a message that cannot be decoded; without seq: not even that
//	dup                  the endpoint's last message once more
//	connect, disconnect
//	                     each of these with on=N where it is another endpoint than 0
//	poll …               script_polls_test.go tells
//	leads on=N           the master of an endpoint says that it leads
//	recorder-starts, import-starts
//	restored             the state is encoded and decoded, as over a restart of the recorder
//
// With `times` each line tells the publisher time that the message stands at.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "run" {
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			s := script{times: d.HasArg("times")}
			var out strings.Builder
			for _, line := range strings.Split(d.Input, "\n") {
				line, _, _ = strings.Cut(line, "#")
				if strings.TrimSpace(line) == "" {
					continue
				}
				said, err := s.line(line)
				if err != nil {
					d.Fatalf(t, "%q: %v", line, err)
				}
				fmt.Fprintln(&out, said)
			}
			return out.String()
		})
	})
}

// scriptBegin is when scenarios begin.
var scriptBegin = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

type script struct {
	state State
	polls map[int]*Polls
	times bool
	made  uint64              // messages
	last  map[int]sentMessage // by endpoint
}

type sentMessage struct {
	batch  event.Batch
	frames [][]byte
}

func (s *script) line(line string) (string, error) {
	words := strings.Fields(line)
	on, words, err := endpointOf(words)
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(words[0], "poll") {
		return s.poll(on, words)
	}
	switch words[0] {
	case "msg", "damaged":
		return s.message(on, words)
	case "dup":
		last, is := s.last[on]
		if !is {
			return "", fmt.Errorf("there is no last message")
		}
		copied := make([][]byte, len(last.frames))
		for i, f := range last.frames {
			copied[i] = append([]byte(nil), f...)
		}
		v := s.state.MessageFrom(on, &last.batch, copied, scriptBegin.UnixNano(), false)
		return s.verdict(&v), nil
	case "connect":
		return factText(s.state.ConnectsFrom(on)), nil
	case "disconnect":
		s.state.DisconnectsFrom(on)
		return factText(CauseNone), nil
	case "leads":
		s.state.Leads(on)
		return factText(CauseNone), nil
	case "recorder-starts":
		return factText(s.state.RecorderStarts(RecorderWasDown)), nil
	case "import-starts":
		return factText(s.state.RecorderStarts(ConnectionBroken)), nil
	case "restored":
		restored, err := DecodeState(s.state.AppendBinary(nil))
		if err != nil {
			return "", err
		}
		restored.SetLast(s.state.Last())
		s.state = restored
		return "-", nil
	}
	return "", fmt.Errorf("unknown command")
}

func (s *script) message(on int, words []string) (string, error) {
	s.made++
	b := event.Batch{HasTime: true}
	at, received := time.Duration(0), time.Duration(0)
	kind, slow := event.Stored, false
	damaged := words[0] == "damaged"
	var first, count uint64
	ids := false
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		var err error
		switch name {
		case "seq":
			b.HasSeq = true
			b.Seq, err = strconv.ParseUint(value, 10, 64)
		case "ids":
			from, to, more := strings.Cut(value, "-")
			ids = true
			first, err = strconv.ParseUint(from, 10, 64)
			count = 1
			if more && err == nil {
				var last uint64
				last, err = strconv.ParseUint(to, 10, 64)
				count = last - first + 1
			}
		case "n":
			count, err = strconv.ParseUint(value, 10, 64)
		case "removed":
			kind = event.Removed
		case "cleared":
			kind = event.Cleared
		case "slow":
			slow = true
		case "damaged":
			damaged = true
		case "notime":
			b.HasTime = false
		case "at":
			at, err = time.ParseDuration(value)
		case "received":
			received, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return "", err
		}
	}
	for i := range count {
		b.Events = append(b.Events, event.Event{Type: kind, HasID: ids, ID: first + i})
	}
	if b.HasTime {
		b.Time = scriptBegin.Add(at).UnixMilli()
	}
	frames := [][]byte{nil, binary.BigEndian.AppendUint64(nil, b.Seq), binary.AppendUvarint(nil, s.made)}
	switch {
	case damaged && b.HasSeq:
		b.Damage, b.HasTime, b.Time, b.Events = event.Cut, false, 0, nil
	case damaged:
		b.Damage, b.HasTime, b.Time = event.SeqFrameSize, false, 0
		frames[1] = frames[1][:4]
	case !b.HasSeq:
		return "", fmt.Errorf("a message has a seq")
	}
	if s.last == nil {
		s.last = map[int]sentMessage{}
	}
	s.last[on] = sentMessage{b, frames}
	v := s.state.MessageFrom(on, &b, frames, scriptBegin.Add(received).UnixNano(), slow)
	return s.verdict(&v), nil
}

func factText(mark Cause) string {
	if mark == CauseNone {
		return "-"
	}
	return "mark behind: " + mark.String()
}

func (s *script) verdict(v *Verdict) string {
	words := []string{fmt.Sprintf("epoch %d", v.Epoch)}
	add := func(on bool, word string) {
		if on {
			words = append(words, word)
		}
	}
	add(v.Stale, "stale")
	add(v.Duplicate, "duplicate")
	add(v.Damage != event.None, "damaged: "+v.Damage.String())
	add(v.Follows, "follows")
	add(v.Keyed, "keyed")
	add(v.InWindow, "in window")
	add(v.Mark == MarkBefore, "mark before: "+v.MarkCause.String())
	add(v.Mark == MarkBehind, "mark behind: "+v.MarkCause.String())
	if v.Gap.Cause != CauseNone {
		words = append(words, gapText(v.Gap))
	}
	if s.times {
		at := "no time"
		if v.HasTime {
			at = "time " + time.UnixMilli(v.Time).Sub(scriptBegin).String()
		}
		words = append(words, at)
	}
	return strings.Join(words, ", ")
}

func gapText(g Gap) string {
	out := fmt.Sprintf("gap %s in epoch %d", g.Cause, g.Epoch)
	if g.Missing() > 0 {
		out += fmt.Sprintf(" missing %d..%d (%d)", g.First, g.Last, g.Missing())
	}
	switch g.Lost {
	case LostExactly:
		out += fmt.Sprintf(" lost %d", g.Min)
	case LostBetween:
		out += fmt.Sprintf(" lost %d to %d", g.Min, g.Max)
	}
	return out
}
