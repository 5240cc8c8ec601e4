// Package continuity judges each message of a source by the ones before it: whether it continues them, which epoch it is of,
// what is missing before it and why, and which older evidence it puts in doubt. These are rules R3 to R6, and the parts of
// R7 and R8 that depend on the order of messages, as a pure state machine: no I/O, no clock.
//
//	State + what happened (message, connected, disconnected, recorder starts)  ->  State + Verdict
//	State + Polls + what happened (poll sent, answered, failed)                ->  State + Polls + Outcome
//
// The verdict is journaled beside the message, so that nothing that reads the journal has to judge again. The state is small (about
// 30 bytes, 40 more for each other endpoint that ever delivered, encode.go) and journaled with every commit: a recorder that starts goes on where the last one ended.
//
// # How a message is judged
//
// A publisher gives two numbers when it sends a batch, after its queue dropped some events: a seq, which dropped
// events use up too, and event_ids, which they do not. With g = missing seqs and d = missing event_ids:
//
//	same connection   g = 0, d = 0   follows
//	                  g > 0, d = 0   publisher_queue: exactly g events
//	                  g > 0, d > 0   transport (recorder_slow if our buffer was full): d to d + g - ceil(d/64) events
//	                  g = 0, d > 0   publisher_restart: numbers of another process
//	                  seq or id back publisher_restart
//	new connection    seq + 1        reconnect: nothing missing, and nothing proven
//	                  seq further    disconnected or recorder_down: how many events is not known
//	                  seq or id back publisher_restart
//	never heard       seq 1          begins
//	                  seq > 1        late_join
//
// # Where the mark lies
//
// Everything but "follows" and "begins" is a mark: older evidence is in doubt. A restart seen from seq 1 has its mark before its
// first batch, which is evidence. Everything else has it behind the batch that showed it (the shadow): a publisher reserves
// the numbers of dropped events while a batch already taken from its queue has none yet, so what is missing may be newer than that batch.
//
// # The window
//
// Connection events come on another socket than messages and overtake them. From Disconnects until Connects, what
// arrives may be of the old connection or of the new one: every such message is InWindow, and where there was one, a mark lies
// at Connects. The first message behind either is judged as the first of a connection.
//
// # Several endpoints
//
// A source may have several endpoints, the masters of one HA group, of which only the leader publishes. Endpoint is the one
// that delivered last. The zero value stands for endpoint 0, and the methods without an endpoint mean it.
//
//	from another endpoint     never delivered              publisher_restart: a new epoch (mark and shadow as above)
//	                          its last message once more   stale, duplicate
//	                          seq or id back               publisher_restart: another process runs there
//	                          numbers go forward           stale; but if its connection broke since it delivered, and the one to
//	                                                       Endpoint broke too with no message since: publisher_restart
//	                          seq cannot be read           stale on the connection by which it delivered, else a mark: damaged
//	connected, disconnected   of Endpoint                  R5
//	                          of another                   no doubt
//
// A stale message is of the epoch of its process and changes nothing else. Why forward numbers are stale: what a deposed
// leader had queued arrives late, for each endpoint has a socket of its own (ZMQ.md), and taking it for a new epoch would make
// the messages of the true leader stale. What would be heard too late by that rule, a leader that comes back under higher
// numbers while the connection to its deposed successor stands, is found by its counters (they are lower) or told by Leads.
//
// # Polls
//
// The status of a master (../shared/spec/master-admin.md) counts what its publisher sent since its process started; seq and
// event_id start at 1 there, and last seq = published_batches + dropped_events in every recorded run. A sender counts a
// batch behind sending it, so a sum one below the last seq is only slow.
//
//	a counter lower than before, or       another process: a new epoch, a mark, publisher_restart without numbers. FromPoll until
//	sum < seq at sending - 1              its first message: from seq 1 it needs no line; else 1..seq-1 are disconnected
//	settled, sum = seq                    the tail is proven
//	settled, sum > seq                    tail_loss, Seq = sum; the next batch follows by seq alone
//	settled, first word of a connection   as the first message of it: reconnect, disconnected, recorder_down, late_join
//	settled, another endpoint than the    it leads: publisher_restart without numbers, as above
//	one that is gone
//
// Settled: two polls sent at least 1 s apart, no message or connection change of Endpoint from the sending of the first to the
// answer of the second, equal counters, and the connection stands. That the counters catch up, and that the socket notices the
// end of a process, within that second is what R8 rests on; a host that vanishes without a FIN, and is replaced behind the same admin
// address before the keepalive fails, is beyond it.
//
// Whose counters they are. A poll comes by a connection of its own: it overtakes messages, and messages overtake it.
//
//   - If a message showed a restart while the poll was under way, either process may have answered: ignored, and no base to
//     compare with. If it did between two polls, lower counters are no news: they are compared inside an epoch only.
//   - Of a poll sent before the new process's first message and answered before it arrives, the poll shows the restart
//     and the message (seq 1) begins the epoch that is already there; it has a mark before it only if the
//     connection changed meanwhile, because a reading may have been made of yet another process.
//   - Messages of the old process that the poll overtook are stale. They are known by their numbers (seq and event_id go on, or
//     event_id alone where the queue dropped some), until the new connection's Connects: behind it none can come.
//   - A tail that seemed lost and comes after all, on the same connection, goes on where it was: no restart, no gap.
//
// Lost events of a tail. Each missing number was a batch of 1 to 64 events or one dropped event. Where this process was
// seen to give its first event the id 1 (or settled counters agreed with the last id), published_events - last id events were in
// the missing batches; what was dropped before the last proof was dropped before the tail.
package continuity
