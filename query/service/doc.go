// Package service puts the parts together: a recorder with index and answers in one process (Record), a directory that only this
// process writes to (OpenForWriting, for imports), and a directory at rest that is only read (OpenAtRest).
//
//	recorder ──▶ journal ──durable──▶ index ──▶ answers ◀── DIR/kvjournal.sock
//	   ▲                                │
//	   └── polls, readings ◀── masters ◀┘ doubts
//
// Each source with admin URLs has a poller for every master (poller.go) and one reconciler (master.go, index/reconcile). What they find
// reaches the journal through the recorder's writer, like everything else.
//
// Recording comes first: it starts before the index is open, goes on when the index or the socket fails, and has the
// processor to itself while its buffer fills (the materializer waits).
//
// Where there is too little room on the disk recording pauses (Config.MinFree); the index may use half of what is left, so that it catches up, and
// answers go on. On a full disk every write waits for room until the service ends.
//
// A directory at rest is not changed, but for an index that is behind its journal or damaged: that is brought up, or computed anew, on disk if
// nobody else is there, and in memory otherwise (datadir.Overlay), so that every reader has the same answers. The journal is open for reading
// only: where its end is lost a question puts in doubt, in memory, what the next writer will, and writes nothing down. An old index may be all that knows
// of the loss; what it knew is kept before it goes (index.KnownTo).
//
// # Damage
//
//	index    computed anew by itself: at an open, when a question meets it (the answer is an error, or waits: HealAtRest), when a compaction or
//	         the materializer does (heal.go)
//	journal  no answer but an error that names offset and file; recording goes on where nothing more is lost by it. Verify finds it, Repair saves
//	         the rest
//
// # Others than the owner
//
// Config.Listen answers them over HTTP, and Front does for a directory whoever writes to it (`kvjournal serve`). Metrics (metrics_table.go) are
// read from what is counted anyway when they are asked for; a commit and an answer cost an observation each, an event a comparison
// (recorder.Tally).
//
// What a recorder keeps is bounded (Retention, retention.go): a background task prunes when it is due.
package service
