package message

import "math/rand/v2"

const (
	calmMessages, calmGroup = 400, 8
	busyMessages, busyGroup = 200, 32
)

// day is a stretch of calm, then one of load, and so on.
type day struct {
	rng  *rand.Rand
	at   int // message of the stretch
	busy bool
}

// next is the size of the group that the next message belongs to, and its number of events.
func (d *day) next() (messages, events int) {
	length, group := calmMessages, calmGroup
	if d.busy {
		length, group = busyMessages, busyGroup
	}
	first := d.at / group * group
	messages = min(group, length-first)
	events = 64
	if !d.busy {
		events = calmEvents(d.rng.IntN(100))
	}
	if d.at++; d.at == length {
		d.at, d.busy = 0, !d.busy
	}
	return messages, events
}

// calmEvents are the events of a message of a master without load, by a number below 100: as in captures of real ones.
func calmEvents(percent int) int {
	switch {
	case percent < 65:
		return 1
	case percent < 75:
		return 2
	case percent < 85:
		return 3 + percent%3
	default:
		return 13 + percent%9
	}
}
