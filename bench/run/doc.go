// Package run is the harness: it gives every contender the same work, in turn, round after round.
//
// # Workloads, for each shape of messages
//
//	append        all groups, durable at the end; ack: the first of them, each waited for
//	open          after a crash: of a copy of the directory made without closing it, until the newest message is known
//	disk          bytes of data at rest, after Settle and Close; needed: as the contender tells, without logs that are kept to be used again
//	read, get     everything back in order, compared; single messages by seq, compared
//
// and of contenders that know where objects are (Places):
//
//	track         append and index, nothing left behind; track_disk: both at rest; track_open: after a crash, until a first answer
//	now           each object once, in batches of 1,000; then hits and misses one by one, and a batch again and again; hits are compared with the master's own state
//	at            hot: 1,000 objects at 64 moments again and again; uniform: any object of any event at any moment
//	history       all events of one object
//	rebuild       what the answers need, computed from the journal anew
//
// Every directory is fresh, files are in the page cache when they are read, and what one contender has written is on disk before
// the next begins. The answers about the past must be the same for all.
//
// # What it shows
//
// Three rounds on 2 cores with nothing else on the machine (results/latest.json), and one growth (results/growth.json). 64 / 1 events a
// message / mixed day:
//
//	append, of raft-wal's, at a share of its bytes      1.4 x / 2.1 x / 1.0 x, at 1/11 / 1/12 / 1/11
//	append, of SQLite's                                 2.5 x / 3.2 x / 1.4 x
//	append and index, events/s                          554,000 / 461,000 / 370,000
//	rebuild, events/s                                   1,280,000 / 745,000 / 1,140,000
//	journal, with its index, B an event                 34.7 / 36.0 / 35.2, 76 / 97 / 78
//	now: hit p50, p99; batch of 1,000                   1.6 to 1.7 us, 2.8 to 2.9 us; 0.87 to 0.94 ms
//	at T: hot, uniform p50                              1.2 to 1.3 us; 6.1 / 3.1 / 6.3 us
//	from 1 to 100 million events, a million hot keys    append 3.5 to 2.1 us, hit p50 1.28 to 1.32, p99 5.0 to 5.2, open 83 to 137 ms,
//	                                                    memory 332 to 429 MiB, disk 109 to 77 B an event
//
// A growth that was run later, with times that are kept (query/settled.go), has hot at T at 1.19 us with 1 million events and 1.20 with 100, where
// growth.json has 1.66 and 1.56. Its append went from 1.7 to 3.1 us: one run says little of what the disk does in its last seconds.
//
// # Where kvjournal is not the first, and why
//
//   - At T, hot, it is 20.6 / 19.7 / 19.7 x SQLite's on these sets, of a million events and less. With more behind it is 20 x and more: 1.2 us
//     with 1, 10 and 100 million events, SQLite 24.9, 25.2 and 25.9 with 1, 10 and 20 million (--growth --contenders sqlite; it takes 102 us
//     to add an event there). SQLite's in pure Go is 6 x slower on the small sets, 26 x on the mixed day. It was 14 x SQLite's before times
//     that are asked about again were kept with what follows from them (query/settled.go), 7 x before moments were kept by ranges of time
//     (journal/doc.go) and objects whole (index/hot.go).
//   - Any object at any time, among tens of millions of events: 160 us, since most blocks of headers and rows are read and unpacked for the first
//     time. SQLite with 20 million takes 31: its tables, 10 GB, lie in memory here.
//   - p99 of a message by its seq (130 to 158 us; raft-wal 29 to 66, SQLite 13 to 70): a block of 256 KiB is opened where it is not kept (32 MiB
//     are). It is the price of a twelfth of the bytes. p50 is the least of all contenders, but for the plain file's on the mixed day (5.3 us; 7.2).
//   - The history of an object: 10 to 13 us, SQLite 13 to 15, in pure Go 10 to 12 on the smaller sets and 19 on the mixed day. Each line has its
//     certainty, and what it follows from. A third is the database's seek.
//   - Open after a crash: 13 to 41 ms, with the index and a first answer 17 to 41; SQLite 1 to 3, and 3 to 8; raft-wal 1 to 5. Pebble replays its
//     log into tables in Open, 2.7 ms of processor time a MiB, and it is read before, to know that nothing of it is missing (journal/doc.go).
//     Others that look through what they have take 36 to 274 ms; JSON lines are not looked at.
//   - Behind a publisher that sends 620,000 events/s for 30 s the index is level again 36 s later (make figures; wanted: 30). Nothing is lost: it
//     gives way to the receiver, and then applies 450,000 events/s, of which a quarter is compactions and a quarter memtables (index/doc.go). It
//     was 49 s.
//   - One group at a time (ack, p50) the plain file is faster, NATS without a sync too but for single events, JSON lines without a sync where messages
//     or groups are small, and SQLite on the mixed day (its p99 is 8.3 ms there, ours 1.6).
package run
