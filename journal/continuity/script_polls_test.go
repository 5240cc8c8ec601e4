package continuity

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// endpointOf takes on=N out of the words of a script's line.
func endpointOf(words []string) (on int, rest []string, err error) {
	for _, w := range words {
		value, is := strings.CutPrefix(w, "on=")
		if !is {
			rest = append(rest, w)
			continue
		}
		if on, err = strconv.Atoi(value); err != nil {
			return 0, nil, err
		}
	}
	return on, rest, nil
}

// poll takes the lines of a script that poll an endpoint's status:
//
//	poll at=DURATION COUNTERS   sent, and answered at once
//	poll-sent at=DURATION
//	poll-answered COUNTERS
//	poll-failed
//
// COUNTERS are sum=N, or batches=N dropped=N; and events=N (else as many as batches), keyless=N (else 0), old-status (no
// keyless counter), off.
func (s *script) poll(on int, words []string) (string, error) {
	if s.polls == nil {
		s.polls = map[int]*Polls{}
	}
	p := s.polls[on]
	if p == nil {
		p = &Polls{Endpoint: on}
		s.polls[on] = p
	}
	c := Counters{Enabled: true, HasKeyless: true}
	at, events := time.Duration(0), false
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		var err error
		number := func(to *uint64) { *to, err = strconv.ParseUint(value, 10, 64) }
		switch name {
		case "at":
			at, err = time.ParseDuration(value)
		case "sum", "batches":
			number(&c.Batches)
		case "dropped":
			number(&c.Dropped)
		case "events":
			events = true
			number(&c.Events)
		case "keyless":
			number(&c.Keyless)
		case "old-status":
			c.HasKeyless = false
		case "off":
			c.Enabled = false
		default:
			err = fmt.Errorf("unknown word %q", w)
		}
		if err != nil {
			return "", err
		}
	}
	if !events {
		c.Events = c.Batches
	}
	switch words[0] {
	case "poll-sent":
		p.Sent(&s.state, scriptBegin.Add(at).UnixNano())
		return "-", nil
	case "poll-failed":
		p.Failed()
		return "-", nil
	case "poll":
		p.Sent(&s.state, scriptBegin.Add(at).UnixNano())
	case "poll-answered":
	default:
		return "", fmt.Errorf("unknown command")
	}
	return outcomeText(p.Answered(&s.state, c)), nil
}

func outcomeText(o Outcome) string {
	words := []string{fmt.Sprintf("epoch %d", o.Epoch)}
	add := func(on bool, word string) {
		if on {
			words = append(words, word)
		}
	}
	add(o.Ignored, "ignored")
	add(!o.Delivers, "standby")
	if o.Settled {
		words = append(words, "settled since "+time.Unix(0, o.Since).Sub(scriptBegin).String())
	}
	add(o.Mark == MarkBehind, "mark behind: "+o.MarkCause.String())
	if o.Gap.Cause != CauseNone {
		words = append(words, gapText(o.Gap))
	}
	if o.Changed {
		now := "none"
		var names []string
		for i, name := range []string{"publisher off", "keyless", "no keyless counter"} {
			if o.Conditions&(1<<i) != 0 {
				names = append(names, name)
			}
		}
		if names != nil {
			now = strings.Join(names, " + ")
		}
		words = append(words, "conditions: "+now)
	}
	return strings.Join(words, ", ")
}
