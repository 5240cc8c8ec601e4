package mooncake

import (
	"fmt"
	"strings"
)

// State is what the master said of one key.
type State uint8

const (
	// Unknown: nothing can be concluded. "ok" with no replica named, an error that is not one of the two below, or a
	// contradiction. Leave it in doubt.
	Unknown State = iota
	// Readable: on the media that the Answer names, and on no other.
	Readable
	// NotReady: a put was begun and not ended (REPLICA_IS_NOT_READY): not readable anywhere.
	NotReady
	// NotFound: the master has no such object (OBJECT_NOT_FOUND).
	NotFound
	// Unaskable: the API cannot be asked for this key. Nothing was sent for it.
	Unaskable
	// Refused: the master refused each call with this key, also alone, while it answered others.
	Refused
	// Skipped: IsolationCalls were spent before a call with this key was answered.
	Skipped
)

func (s State) String() string {
	return [...]string{Unknown: "unknown", Readable: "readable", NotReady: "not_ready", NotFound: "not_found",
		Unaskable: "unaskable", Refused: "refused", Skipped: "skipped"}[s]
}

// Answer is what BatchQuery found out about one key.
type Answer struct {
	State  State
	CPU    bool   // a memory replica is readable; only with Readable
	Disk   bool   // a replica of any other class is; only with Readable
	Reason string // why nothing is known; empty with Readable, NotReady and NotFound
}

// entry is the value of one key in a reply, as it was written.
type entry struct {
	ok       bool
	okKnown  bool
	err      string
	errKnown bool // "error" is a string, not null
	cpu      bool // values is not empty
	disk     bool // disk_values, local_disk_values or nof_values is not empty
	strange  string
}

// answer says what an entry means.
func (e *entry) answer() Answer {
	unknown := func(format string, args ...any) Answer {
		return Answer{Reason: fmt.Sprintf(format, args...)}
	}
	replicas := e.cpu || e.disk || e.strange != ""
	switch {
	case !e.okKnown:
		return unknown(`the master's entry has no "ok"`)
	case !e.ok && replicas:
		return unknown("the master names replicas and the error %q", e.err)
	case !e.ok && e.err == "REPLICA_IS_NOT_READY":
		return Answer{State: NotReady}
	case !e.ok && e.err == "OBJECT_NOT_FOUND":
		return Answer{State: NotFound}
	case !e.ok && e.errKnown:
		return unknown("the master says %q", e.err)
	case !e.ok:
		return unknown("the master says neither ok nor why not")
	case e.errKnown:
		return unknown("the master says ok and %q", e.err)
	case e.strange != "" && !e.disk:
		// Every class but memory is announced as disk, but whether this is one is not known.
		return unknown("a replica of an unknown class, %q", e.strange)
	case !replicas:
		return unknown("the master says ok and names no replica")
	}
	return Answer{State: Readable, CPU: e.cpu, Disk: e.disk}
}

// unknownClass says whether a field looks like one of replicas: those known are values, disk_values, local_disk_values, nof_values.
func unknownClass(name string) bool { return strings.HasSuffix(name, "_values") }
