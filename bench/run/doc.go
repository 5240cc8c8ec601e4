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
package run
