// Package mooncaketest is a faithful stand-in for a Mooncake Store master, for tests, measurements and demos: the publisher
// of its KV events, as spec/subscriber-guide.md describes it, and its admin HTTP API, as spec/master-admin.md records it.
// What it holds is known exactly.
//
//	Store        what a store holds, and a seeded source of changes to it; no I/O, no clock
//	Publisher    queue, numbering and ZMQ PUB socket of one publisher process
//	Sim          a store and a publisher, driven by rate, bursts, restarts and quiet moments, or by hand
//	Admin        the admin API over a Sim: an http.Handler, or a server of its own
//	TruthWriter  the store's true state at quiet moments, as conformance/captures/*.truth.jsonl.zst
//
// A test that wants exact events uses a Publisher alone and calls Enqueue; one that wants exact events and what a master
// says meanwhile uses a Sim without Run, and Do; one that wants traffic uses a Sim and Run.
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
// received seq, by one batch. Options.StatusLag makes that last, and never makes it two: the real sender counts a batch
// before it takes the next, and R8 concludes a restart from more.
//
// Options.QueueDelay and Publisher.Hold keep events in the queue while the store goes on. The sender still takes all
// that is there, up to 64: a batch of fewer leaves the queue empty, and R9 concludes from it that everything older was
// announced.
//
// # Loss
//
// Two places lose events, as in the real publisher: the queue (Options.QueueCapacity; counted in dropped_events, a gap
// in seq and none in event_id) and the PUB socket at its send high-water mark (Options.SendHWM; silent, both numbers
// jump). A subscriber that is not connected yet receives nothing, and nothing tells it so. Publisher.Lose loses messages
// as a high-water mark does; SimOptions.TailLoss does so at the beginning of quiet moments, where only the counters show
// it.
//
// Masters also change things and say nothing: SimOptions.SilentRemovals, SegmentLossEvery, Sim.Silently, UnmountSegment.
// Then the truth is not what the stream says.
//
// # The admin API
//
// The replies are those recorded in spec/master-admin.md, byte by byte. What was not recorded is marked "guess" in the
// code: the Content-Type of all but the listing and the 503 text, what a standby says of itself, the order of entries in
// a query's reply (as asked), and the case of \uXXXX digits. Each trap of that file is here, with a test that holds it:
//
//	odd keys      decoded, then cut at commas; "+" is a space; a malformed %x ends the list; one key that is no UTF-8
//	              fails the call; a newline makes two lines of a listed key                       adminkeys_test.go
//	tenants       only "default" is visible                                                       admin_test.go
//	moments       a listing walks its shards one by one, a query its keys: the lock is free between, and AdminOptions.OnStep
//	              is called there; what is listed may be not readable yet, or gone                adminwalk_test.go
//	standby       503 on all but /health and /role                                                admin_test.go
//	restart       no keys, counters at 0, the same segments; a request in flight gets no answer   adminwalk_test.go
//	counters      behind the stream; two names of the fourth                                      delay_test.go
//	segments      an id lasts, and never comes back                                               admin_test.go
//	faults        status 500, no answer, half a body, the end of the connection                   adminwalk_test.go
//
// A race is scripted like this: the hook runs with no lock held, on the goroutine that answers, so that what it does lies
// exactly between two reads.
//
//	sim, _ := mooncaketest.NewSim(mooncaketest.SimOptions{Store: mooncaketest.StoreOptions{Shards: 4}})
//	admin := mooncaketest.NewAdmin(sim, mooncaketest.AdminOptions{OnStep: func(s mooncaketest.Step) {
//		if s.Path == "/get_all_keys" && s.Stage == mooncaketest.Read && s.N == 2 {
//			sim.Do(mooncaketest.Change{Type: event.Removed, Tenant: "default", Medium: mooncaketest.CPU, Key: "k"})
//		}
//	}})
//	server := httptest.NewServer(admin) // or admin.Serve("127.0.0.1:0")
//	sim.Publisher().Hold(true)          // what Do changes is announced after Hold(false)
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
// A listing of 1,000,000 keys (76 MB) takes 0.33 s, a query of 1,000 keys among them 2.5 ms (BenchmarkAdminListing,
// BenchmarkAdminQuery); a real master needed 0.09 s for 100,000 and about 5 ms for 1,000. An Admin costs its Sim 16 bytes
// an object, and a hash of the key for each that comes or goes.
//
// A Sim with Rate 0 ("flat out") generates faster than the sender sends, so its queue is always full. Callers of the
// real master are never held up by the queue, but a generator that does nothing else would take the sender's processor
// and have most of its events dropped; so, when the queue is full, a flat-out Sim rests for up to a millisecond until
// there is room, and only then goes on. With the default capacity next to nothing is dropped that way; with a tiny one
// most is. Bursts never rest.
package mooncaketest
