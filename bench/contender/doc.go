// Package contender puts what a user could pick for a journal of messages behind one small interface, kvjournal first.
//
// # What each does for one group
//
//	kvjournal         judge, compress, one synced commit; the commit before may still be syncing
//	file              one write, one fdatasync: the limit
//	file-zstd         the same with the group as one zstd frame
//	raft-wal          StoreLogs, one fsync                                            hashicorp/raft-wal
//	nats              an async publish a message, all acknowledged; no sync           NATS JetStream, embedded, file store
//	nats-sync         an atomic batch publish; sync_interval: always                  the same
//	sqlite            one transaction of a row a message; WAL, synchronous=FULL       mattn/go-sqlite3 (C)
//	sqlite-go         the same                                                        modernc.org/sqlite (Go)
//	jsonl             a line of JSON an event, one write, no sync                     as recorders of this field write them
//	jsonl-sync        the same and one fdatasync
//
// Two of them can also say where an object is (Places): kvjournal with its index, and SQLite with a second table, whose primary key is
// the index that a question about a moment needs (object, medium, time), clustered: one tree instead of a table and an index, the
// faster of the two. Both have a cache of 64 MiB.
//
// # Contract
//
// Append may return before the group is durable, where the contender's own interface lets a caller go on so; after Sync it is, in
// the sense of Kind.Durability. Settle leaves a contender as it would lie at rest: compacted, checkpointed, sealed. What comes back from
// ReadAll and Get is compared with what went in, bytes for bytes, but for jsonl, which keeps the fields of events only.
package contender
