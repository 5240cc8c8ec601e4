// Package datadir is what the two databases of a kvjournal data directory share: the format gate, the locks, and the
// ways in which Pebble reaches the filesystem.
//
//	DIR/KVJOURNAL     the gate: "kvjournal data directory, format 1\n", written before anything else
//	DIR/claim         flock, exclusive: held by a writer (record, import, rebuild) for as long as it runs; its text
//	                  names the process
//	DIR/access        flock, shared by readers at rest and by the writer; exclusive: a command that brings the index up
//	DIR/journal/      the log, a Pebble database
//	DIR/index/        what is computed from it, a Pebble database; index.new/ while it is rebuilt
//	DIR/*.rows/, DIR/baseline.new/   tables on their way into index or journal, while a baseline is loaded or written
//	DIR/head          the newest offset that was acknowledged, so that a lost tail of the log is found out
//	DIR/live.json     where the running recorder listens
//
// # Who may do what at once
//
//  1. One writer: the claim is exclusive.
//  2. A starting writer is never stopped by a reader: readers do not touch the claim's lock longer than it takes to see
//     whether it is held. A reader looks after opening and again before it prints; where it is held, what was read
//     may be torn, and is not printed.
//  3. A command that brings the index up to the journal needs the access lock for itself; it gives way when a claim
//     appears. A starting writer waits that long.
//
// Pebble's own lock is an fcntl lock, which is lost when any file descriptor of the lock file is closed, and a
// read-only open takes it too. So Pebble is given a filesystem whose Lock does nothing (Unlocked), and these locks
// are flocks.
package datadir
