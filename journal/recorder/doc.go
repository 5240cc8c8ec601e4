// Package recorder brings what sockets and captures deliver into a journal.
//
//	socket  ──subscribe──▶ bounded buffer ──▶ Feed: scan, judge ──▶ group ──▶ journal
//	capture ──────────────────────────────────▶ Feed ───────────────▶ group ──▶ journal
//
// # Invariants
//
//  1. A Feed is the only way into a journal, so a stream and its capture give the same records, but for the recorder's own facts
//     (started, stopped), which an import does not write.
//  2. A message that was received is never thrown away: when the buffer is full nothing more is read, and the publisher drops at
//     its own high-water mark; that loss is recorder_slow.
//  3. Where a source stands is committed in the same batch as its records: a restart goes on with the right epoch and numbers.
//  4. Facts of others (polls, readings) are added by the writer too, between two records (Recorder.Do): there is one order.
//  5. A source may have several endpoints. All are received; only the one that delivers is in doubt when its connection breaks.
//  6. When Run returns nil, everything received is durable.
//  7. What a publisher sends beyond the bounds is never skipped silently: a batch of too many events is stored, marked and counted as
//     damage is (event.TooMany); a message too large to be taken, or that makes libzmq hold too much, breaks the connection (native.go).
//  8. A pause for want of room (Room) is a stop and a start: all that was received is durable, and what is lost meanwhile is recorder_down.
//
// A commit takes all that the buffer holds, up to 2 MiB, while at most two commits wait for their sync, and begins 10 ms behind the one before
// (Options.Pace) unless as much is there: so a message that comes alone is durable at once, and groups grow under load. Of 50,000 events/s, on
// two busy cores, a recorder took 116 % of one with a pace of none and 103 % with 10 ms: there are fewer syncs, and almost no small blocks to
// seal (2.1 s of 15 before, 0.1 now). With the index's beat (index.Options.Beat) of 50 ms in place of 10: 82 %. It was 131 % with neither.
package recorder
