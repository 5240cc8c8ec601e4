package contender

import (
	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// Media is where an object is.
type Media uint8

const (
	CPU Media = 1 << iota
	Disk
)

// MediaOf is where the simulated master has an object.
func MediaOf(o *mooncaketest.Object) (m Media) {
	if o.CPU {
		m |= CPU
	}
	if o.Disk {
		m |= Disk
	}
	return m
}

// Object names an object of the master's one backend.
type Object struct{ Tenant, Key string }

// Places is a journal that can also say where objects are. What is appended is in the answers after CaughtUp.
type Places interface {
	Journal
	// CaughtUp waits until all that was appended is durable and in the answers.
	CaughtUp() error
	// Now says where an object is.
	Now(o Object) (Media, error)
	// NowMany answers for many at once, in order.
	NowMany(dst []Media, objects []Object) ([]Media, error)
	// At says where an object was at a publisher time, Unix ms.
	At(o Object, ms int64) (Media, error)
	// History returns the number of the object's own events, having read them all.
	History(o Object) (int, error)
}

// Rebuilder is Places that can compute what its answers need from its journal anew.
type Rebuilder interface {
	Rebuild() error
}

// Tracked is Places whose two halves can be measured apart.
type Tracked interface {
	Places
	// AppendOnly appends groups and makes them durable; only CaughtUp brings them into the answers.
	AppendOnly(groups [][]message.Message) error
}
