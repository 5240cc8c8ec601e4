package subscribe

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// In the tables a turn is what the receive attempt brought and then what was drained:
// "m" a message, "-" an empty socket, "." no attempt; "H" a handshake, "L" a loss.
// A result is the sequence that goes into the buffer: C connected, D disconnected, m message.
func play(turns string) (string, *window) {
	w := &window{}
	var out strings.Builder
	for _, turn := range strings.Fields(turns) {
		got := map[byte]outcome{'m': message, '-': empty, '.': nothing}[turn[0]]
		var drained []transition
		for _, t := range turn[1:] {
			drained = append(drained, map[rune]transition{'H': handshaken, 'L': lost}[t])
		}
		for _, kind := range w.turn(nil, got, drained) {
			out.WriteString(map[capture.Kind]string{capture.Connected: "C", capture.Disconnected: "D"}[kind])
		}
		if got == message {
			out.WriteByte('m')
		}
	}
	return out.String(), w
}

func TestWindow(t *testing.T) {
	for _, c := range []struct {
		name, turns, want string
		open              bool
	}{
		{"nothing yet", "- - -", "", true},
		{"first connection: no window", "- -H m m", "Cmm", false},
		{"first connection, drained with its first message", "mH m", "Cmm", false},
		{"lost and back, nothing between", "-H m -L -H -", "CmDC", false},
		{"the handshake alone proves nothing", "-H m -L -H m", "CmDm", true},
		{"the empty socket before the handshake proves nothing", "-H m -L - - -H", "CmD", true},
		{"the empty socket in the turn of the handshake proves nothing", "-H -L -H m", "CDm", true},
		{"old messages behind the new handshake", "-H m mLH m m - m", "CmDmmmCm", false},
		{"loss and handshake overtake the messages", "-H mLH m -", "CDmmC", false},
		{"a loss drained after a message stands before it", "-H m mL m", "CmDmm", true},
		{"lost again inside the window: one Disconnected", "-H m -L -H mL m -H - m", "CmDmmCm", false},
		{"lost in the very turn that would have proven", "-H -L -H -L -H -", "CDC", false},
		{"lost and back in the very turn that would have proven", "-H -L -H -LH m - m", "CDmCm", false},
		{"attempts that fail in the handshake", "-L -L -LL -H m", "Cm", false},
		{"attempts that fail inside the window", "-H -L -L -L -H -", "CDC", false},
		{"first connection comes and goes in one turn", "-HL", "CD", true},
		{"first connection comes, goes and comes in one turn with a message", "mHLH m - m", "CDmmCm", false},
		{"drained while held up by a full buffer", "-H m .L .H m -", "CmDmC", false},
		{"held up: no attempt, no proof", "-H .L .H . .", "CD", true},
		{"a peer without handshakes", "m m - m", "Dmmm", true},
		{"a peer without handshakes, then a publisher", "m -L -H - m", "DmCm", false},
		{"a handshake without a loss before it", "-H m mH m - m", "CmDmmCm", false},
		{"a handshake without a loss before it, inside the window", "-H -L -H -H m - m", "CDmCm", false},
	} {
		got, w := play(c.turns)
		if got != c.want || w.open() != c.open {
			t.Errorf("%s: %q gives %q, open %v; want %q, %v", c.name, c.turns, got, w.open(), c.want, c.open)
		}
	}
}

// TestWindowModel plays random lives of connections against a model of libzmq: events and messages are queued in the
// order of its I/O thread, each visible to the loop at once, but in two queues. It checks the two promises of window.
func TestWindowModel(t *testing.T) {
	for seed := range uint64(3000) {
		if err := model(rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func model(rng *rand.Rand) error {
	var (
		w          window
		events     []transition
		messages   []int // the connection that each came over
		connection int   // the newest; odd: it stands
		log        []string
	)
	// io is one step of the I/O thread.
	io := func() {
		switch up := connection%2 == 1; {
		case up && rng.IntN(4) == 0:
			events = append(events, lost)
			if rng.IntN(2) == 0 {
				messages = append(messages, connection) // flushed after the event (stream_engine_base.cpp, error)
			}
			connection++
		case up:
			messages = append(messages, connection)
		case rng.IntN(3) == 0:
			events = append(events, lost) // an attempt that failed
		default:
			connection++
			events = append(events, handshaken)
		}
	}
	steps := func(most int) {
		for range rng.IntN(most + 1) {
			io()
		}
	}
	speed := 1 + rng.IntN(3)
	over, inside := 0, false // over: the connection that all messages since the last Connected came over; 0: none yet
	for range 60 {
		steps(speed)
		got, from := empty, 0
		if len(messages) > 0 {
			got, from, messages = message, messages[0], messages[1:]
		}
		steps(speed) // between receive and drain
		drained := events
		events = nil
		log = append(log, fmt.Sprint(got, from, drained))
		for _, kind := range w.turn(nil, got, drained) {
			log = append(log, kind.String())
			if inside == (kind == capture.Connected) {
				return fmt.Errorf("%s twice: %v", kind, log)
			}
			inside, over = kind == capture.Connected, 0
		}
		if got == message && inside {
			if over != 0 && over != from {
				return fmt.Errorf("connections %d and %d inside one proven span: %v", over, from, log)
			}
			over = from
		}
		if got == message && !inside && connection == 1 {
			return fmt.Errorf("a window in the first connection: %v", log)
		}
	}
	// A window does not stay open: once the I/O thread rests on a connection, emptying the socket closes it.
	if connection%2 == 0 {
		events, connection = append(events, handshaken), connection+1
	}
	for range len(messages) + 3 {
		got := empty
		if len(messages) > 0 {
			got, messages = message, messages[1:]
		}
		w.turn(nil, got, events)
		events = nil
	}
	if w.open() {
		return fmt.Errorf("the window stays open: %v", log)
	}
	return nil
}
