// Package continuity judges each message of a source by the ones before it: whether it continues them, which epoch it is of,
// what is missing before it and why, and which older evidence it puts in doubt. These are rules R3 to R6, and the parts of
// R7 and R8 that depend on the order of messages, as a pure state machine: no I/O, no clock.
//
//	State + what happened (message, connected, disconnected, recorder starts)  ->  State + Verdict
//
// The verdict is journaled beside the message, so that nothing that reads the journal has to judge again. The state is small (about
// 30 bytes, encode.go) and journaled with every commit: a recorder that starts goes on where the last one ended.
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
package continuity
