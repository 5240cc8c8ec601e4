// Package mooncaketest is a faithful stand-in for the KV event publisher of a Mooncake Store master, for tests,
// measurements and demos. What it sends is what spec/subscriber-guide.md describes; what it holds is known exactly.
//
//	Store      what a store holds, and a seeded source of changes to it; no I/O, no clock
//	Publisher  queue, numbering and ZMQ PUB socket of one publisher process
//	Sim        a store and a publisher driven by rate, bursts, restarts and quiet moments
//	TruthWriter  the store's true state at quiet moments, as conformance/captures/*.truth.jsonl.zst
//
// A test that wants exact events uses a Publisher alone and calls Enqueue; one that wants traffic uses a Sim.
//
// # Numbering
//
// What makes a publisher's gaps hard to judge (DESIGN.md, R3 and R4) is when it gives its numbers:
//
//	changes ──Enqueue──▶ [ queue, bounded ] ──take, up to 64──▶ encode ──number──▶ send
//	                        │ full: the oldest                 event_id     seq
//	                        ▼ event is dropped
//	                     reserves one seq, no event_id
//
// Both numbers start at 1 in a new Publisher, as in a new process. A batch that was taken has no seq until it is about
// to be sent; events dropped meanwhile are newer than it and yet reserve smaller numbers. published_batches +
// dropped_events is always the last seq, once the sender rests.
//
// The counters of a batch rise only after it was handed to the socket, as the real master's do: a poll may be behind a
// received seq.
//
// # Loss
//
// Two places lose events, as in the real publisher: the queue (Options.QueueCapacity; counted in dropped_events, a gap
// in seq and none in event_id) and the PUB socket at its send high-water mark (Options.SendHWM; silent, both numbers
// jump). A subscriber that is not connected yet receives nothing, and nothing tells it so.
//
// # Speed
//
// Measured on a shared 2-core machine (Xeon, Go 1.26, libzmq 4.3.4), 377 B an event:
//
//	generator alone (BenchmarkStore)                                  198 ns/event
//	generator and encoder (BenchmarkStoreAndEncode)                   495 ns/event
//	flat out, no subscriber (mooncakesim --rate 0)                    2,230,000 events/s, 0.02 % dropped
//	flat out, one subscriber in another process on the same 2 cores   730,000 events/s, 0.6 % dropped
//	--rate 600000, no subscriber                                      599,600 events/s, none dropped
//
// A Sim with Rate 0 ("flat out") generates faster than the sender sends, so its queue is always full. Callers of the
// real master are never held up by the queue, but a generator that does nothing else would take the sender's processor
// and have most of its events dropped; so, when the queue is full, a flat-out Sim rests for up to a millisecond until
// there is room, and only then goes on. With the default capacity next to nothing is dropped that way; with a tiny one
// most is. Bursts never rest.
package mooncaketest
