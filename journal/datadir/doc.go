// Package datadir is what the two databases of a kvjournal data directory share: the format gate, the locks, and the
// ways in which Pebble reaches the filesystem.
//
//	DIR/KVJOURNAL     the gate: "kvjournal data directory, format 1\n", written before anything else; 2 from the first prune on
//	DIR/claim         flock, exclusive: held by a writer (record, import, rebuild) for as long as it runs; its text
//	                  names the process
//	DIR/access        flock, shared by readers at rest and by the writer; exclusive: a command that brings the index up
//	DIR/journal/      the log, a Pebble database; journal.new/ while it is made
//	DIR/index/        what is computed from it, a Pebble database; index.new/ while it is rebuilt
//	DIR/*.rows/, DIR/baseline.new/   rows and tables on their way into index or journal, while the index is rebuilt, or a baseline loaded or written
//	DIR/head          the newest offset that was acknowledged, so that a lost tail of the log is found out
//	DIR/index.head    how far an index knew the journal to go that was computed anew, where the journal ends before (index/known.go)
//	DIR/live.json     where the running recorder listens
//	DIR/backup.json   the directory is a backup: it is read, and not written to (query/backup)
//	DIR/backup.tmp/   links to a live directory's tables, while a backup copies them to another volume
//
// While a directory is filled by a copy, KVJOURNAL.unfinished stands in the gate's place: it is no data directory yet.
//
// # The gate
//
// Format is a number for the whole directory. A program refuses a directory of a later format (ErrNewer) before it touches anything in
// it. A program that knows a later format than the directory's gate names reads it, and raises the gate (Raise, durable on return)
// before the first byte that programs of the older format would misread: so none of those ever opens what it cannot read, and a directory
// that nothing new was written to still opens with them. What is below the gate has versions of its own: the first byte of a
// journal's block, the kinds and flags of records, the format in an index's row j, Pebble's own. Each of them that is newer than known is
// ErrNewer, never taken for damage and never skipped.
//
//	1   a journal from offset 1 on
//	2   one that may begin with a baseline (journal/doc.go, The horizon): a program of format 1 would take what is left for all there was
//
// Files are 0600 and directories below DIR 0700, whatever the umask is (private.go): what is recorded names tenants and keys. The socket
// is made where others cannot enter, and then moved.
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
// # A disk that fails
//
// Pebble is told of no failed write (Guard): it would panic, or try a flush again for ever. A full disk is a slow disk: in a recorder the
// write waits until there is room, and what arrives meanwhile waits in the buffer, then at the publisher. Any other failure
// ends the process with exit code 1 and a message (Exit). What was acknowledged was synced before, so the directory opens as it is.
//
// Pebble's own lock is an fcntl lock, which is lost when any file descriptor of the lock file is closed, and a
// read-only open takes it too. So Pebble is given a filesystem whose Lock does nothing (Unlocked), and these locks
// are flocks.
package datadir
