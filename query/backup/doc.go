// Package backup makes consistent copies of a data directory, of one at rest and of one that is being recorded into, and makes data
// directories of them again.
//
// # What a backup is
//
// A data directory that is read and not written to: the journal as it was at some commit, with all that was acknowledged before the backup
// began, the index of exactly that journal, the head file, the gate, and
//
//	backup.json   {"backup":1,"journal_id":…,"durable_offset":…,"messages":…,"events":…,"created":…,"from":…}
//
// Every question can be asked of it as it is (--dir BACKUP). Writers refuse it: it has the id of the journal that it is a copy of, and
// what they appended would give the same offsets of the same journal to other records.
//
// Tables never change, so on the volume of the directory they are hard links: such a backup costs no room until the recorder's tables
// are compacted or pruned, and protects from mistakes, not from the loss of the disk, nor from a flipped bit in a table that both share.
//
// # How it is made
//
//  1. Beside its place, as NAME.partial, under a claim; renamed in the end. What an interrupted backup leaves has no gate, so no command
//     takes it for data; the next backup to that place clears it away.
//  2. Of a live directory the index first, then the journal, each flushed and then taken as tables alone (Checkpoint): the index is never
//     ahead of the journal, and neither has a log that could be torn. Appending and applying go on. On another volume both are first
//     linked into DIR/backup.tmp, which takes no time, and copied from there.
//  3. Of a directory at rest the files, under the reader's lock. A recorder that starts meanwhile is not stopped; then the copy is thrown
//     away, and the recorder is asked instead.
//  4. It is opened as any reader would, and compared with its source: what is durable, the totals, and a sample of records, byte by byte,
//     each with its events' rows in the index. Nothing is written to the copied databases: Pebble ends the process where it cannot
//     write (its manifest on a full volume), and that process is the recorder. So the index of a copy may be a little behind the
//     copy's journal; whoever opens it first brings it up, as after a crash, and Restore does.
//
// # Back again
//
// Restore copies, and never links: what is restored is appended to. It gives the new directory's journal an id of its own (journal.Fork),
// for from there on two journals may go on from the same offset. What was recorded behind the backup is not known to it; the first
// batch that a recorder then receives is a mark, like after any time without a recorder (R5), so nothing is confirmed wrongly.
package backup
