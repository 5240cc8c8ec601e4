package datadir

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

const (
	// leastDescriptors is how many files a recorder must be allowed to have open. With fewer libzmq can abort the process.
	leastDescriptors = 256
	// otherDescriptors are those that are not for tables: logs, sockets, questions.
	otherDescriptors = 128
	// mostTables is how many tables a database keeps open where it may.
	mostTables = 500
)

// allowed is how many files the process may have open. The Go runtime has raised the limit as far as it goes.
func allowed() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxUint64
	}
	return l.Cur
}

// CheckDescriptors returns an error where too few files may be open to record.
func CheckDescriptors() error {
	if n := allowed(); n < leastDescriptors {
		return fmt.Errorf("too many open files, or nearly: this process may have %d open and needs %d; raise the limit with `ulimit -n 4096`, or LimitNOFILE= of the service", n, leastDescriptors)
	}
	return nil
}

// MaxOpenFiles is how many tables each of the two databases may keep open, so that others have descriptors left.
func MaxOpenFiles() int { return tablesOf(allowed()) }

func tablesOf(allowed uint64) int {
	if allowed < otherDescriptors {
		return 1 // Pebble has a least number of its own
	}
	return int(max(1, min((allowed-otherDescriptors)/2, mostTables)))
}
