// Package subscribe receives the messages of a publisher and the facts of its connection, in one order that can be
// trusted, and moves them into a bounded [Buffer] for the writer.
//
// One [Subscriber] is one endpoint with one SUB socket: several endpoints on one socket are fair-queued, and messages
// of different processes could not be told apart. What comes out is a sequence of [Item]s, message, connected or disconnected,
// the same records that a .kvcap file holds:
//
//	C m m m m D m m C m m m …
//	          └─────┘ the unproven window of rule R5
//
// # Promises
//
//  1. Between a Connected and the next Disconnected, every message came over one connection.
//  2. A message that may have come over a later connection stands behind a Disconnected.
//  3. Messages stand in the order in which libzmq gave them out, byte for byte, and none that it gave out is dropped.
//  4. The first connection has no window: nothing came before it.
//
// What they do not say: that nothing was lost. Between D and C the last messages of the old connection
// and the first of the new one may be missing; only the numbers inside the messages tell.
//
// # Why the order needs a proof
//
// libzmq reports connections through a monitor, which is another socket, and its events overtake the messages: DISCONNECTED was
// seen 15,000 messages early, and the handshake of the next connection while 15,000 messages of the old one were still
// queued. So an event says that something happened, but not between which messages. What holds (libzmq 4.3.4):
//
//	(a) A session has one pipe to its socket for all its connections, written by one I/O thread: messages come in
//	    the order of their connections. A message that is cut off half-way is rolled back.
//	(b) HANDSHAKE_SUCCEEDED is written to the monitor before the first message of its connection is written to the pipe
//	    (stream_engine_base.cpp, mechanism_ready).
//	(c) All messages of a connection are flushed into the pipe before a handshake of the next one is reported. The last of them
//	    may be flushed after DISCONNECTED (error: event_disconnected, then flush).
//	(d) A receive attempt that returns EAGAIN has processed the socket's commands just before (socket_base.cpp, recv), so
//	    it has seen everything that was flushed before it began.
//
// The loop is one goroutine, and one turn of it is: receive without waiting, THEN drain the monitor, THEN judge ([window]).
//
// Promise 2. Let message M be of a later connection than the last Connected. By (b) and (c) the handshake of M's connection,
// and so the DISCONNECTED before it, was on the monitor before M was in the pipe. M was received before the monitor was
// drained in that turn; so the DISCONNECTED was drained in that turn or an earlier one, and its item is pushed before M.
// Had the monitor been drained first, the connection could break between drain and receive, and M would stand before its D.
//
// Promise 1. A Connected that ends a window is pushed only if handshake H was drained in a turn before, then an attempt returned
// EAGAIN, and the drain after that brought no DISCONNECTED. By (c) all messages of the connections before H were
// flushed before H was drained, and by (d) the EAGAIN says that they have all been taken. So each later message is of H's connection
// or a later one, and those stand behind a Disconnected by promise 2.
//
// Under a stream that never pauses the window stays open until the loop has caught up. That is why it must never wait for the writer.
// TestWindowModel plays 3,000 random lives against a model of (a) to (d).
//
// # The full buffer
//
// The loop waits for one thing only: space in the Buffer. Then it stops reading, libzmq fills up to its mark, TCP pushes back, and the
// publisher drops at its own mark, silently. A received message is never thrown away. The item behind the stall is Slow; the gap itself
// comes later, behind all that was queued (see Item.Backlog). While the loop waits it still drains the monitor, because
// libzmq's I/O thread must not wait for us, and still calls into the data socket, because after a reconnect the
// subscription is sent from the caller's thread: a stalled loop that did not would be connected and deaf.
//
// Memory is the Buffer's bound, plus one item beyond it, plus what libzmq holds: ReceiveHWM messages, whatever their size; it bounds a frame
// (MaxMessageSize), and neither the bytes nor the frames of a message, which it gives out when it is whole. So:
//
//   - A message of more than MaxMessageSize together, or of more than 65,536 frames, breaks the connection as a frame above the bound does:
//     a Disconnected, another socket, a reason in Status.
//   - A socket that is opened behind large messages is given a lower mark. The mark of an open one is left alone: lowered, it left libzmq's
//     writer waiting for ever (Options.mark).
//   - The recorder watches what the process holds outside Go's heap (NativeBytes), and gives up (Subscriber.GiveUp) the connection that
//     gave no message for longest: one that sends a message without end was broken 14 to 50 MiB beyond the bound.
//
// # Reconnecting
//
// libzmq's automatic reconnect stays on. Without it (RECONNECT_IVL -1), or when an endpoint is disconnected by hand while messages
// are unread, libzmq drops the unread ones and can abort the whole process (Assertion failed: !_more, fq.cpp) when a publisher
// dies inside a multipart message. A socket is closed here only when it was found empty and has no connection, or at the end;
// never between two frames, and nothing is received from it afterwards.
//
// But the automatic reconnect has two holes ([peer]), both measured with 4.3.4:
//
//   - After a protocol error libzmq never reconnects, and does not say so: DISCONNECTED, then silence for ever. A frame above
//     MaxMessageSize is such an error, and so is a peer of another socket type. All unread messages still come. Told
//     by the missing CONNECT_RETRIED; then the empty socket is replaced.
//   - Its backoff starts anew with every connection that was accepted. A peer that accepts and hangs up is visited ten times a
//     second for ever. After five connections without a message the backoff is taken over from libzmq.
//
// # Heartbeats
//
// libzmq's own (ZMQ_HEARTBEAT_IVL) are off, because they can abort the process (4.3.4): where the loop is held up by a full Buffer and libzmq's
// queue is full too, its engine stops reading; when the publisher dies then, the engine leaves its socket alone until there is room; and the
// next heartbeat is sent all the same: "Assertion failed: !_io_error (src/stream_engine_base.cpp:331)". A slow disk and a
// publisher that restarts were enough. TCP's keepalive finds a host that vanished, and leaves a long stall alone. It does not find a process
// that is stopped on a host that is there; that sends nothing, and its numbers tell what it dropped when it goes on.
//
// A peer older than ZMTP 3.0, or one that happens to speak like it, comes in without a handshake event. Its messages are
// kept, and its connection is never proven: a Disconnected stands before the first, if nothing else does.
//
// # Measured
//
// BenchmarkSubscriber, publisher and subscriber sharing ONE core of a 2-core virtual machine on which other builds ran, with
// nothing dropped: 204,000 to 222,000 messages/s of 500 B, 22,000 to 25,000 of 28 KB (in the worst run, with five other
// processes on the two cores, 118,000 and 8,500). pebbe/zmq4's receive, with its 12 allocations
// a message, is fast enough; it and libzmq's thread take 3.5 µs (500 B) and 25 to 30 µs (28 KB) of CPU a message.
package subscribe
