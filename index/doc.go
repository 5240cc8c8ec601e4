// Package index computes from the journal what questions need: for every object and medium the events about it, and for every
// scope and source what casts doubt on them. It is a function of the journal: a damaged or older one is thrown away and
// computed again, with the same rows.
//
// # Invariants
//
//  1. Blind writes: applying a record reads nothing from the database. What must be remembered (where each source stands) is
//     a row of its own, read once at Open.
//  2. A mark and a clear are one row, whatever the number of objects; nothing that they put in doubt is rewritten. Readers compare
//     positions.
//  3. There is no write-ahead log. Every batch carries the offset it was applied up to, and Pebble flushes in commit order:
//     after a crash the index is exactly the state at that offset, and the rest comes from the journal again. It flushes
//     every 150,000 events or 30 s, which bounds that.
//  4. Only what is durable in the journal is applied.
//  5. Memory does not grow with what a publisher sends: a write ends at 65,536 events or 16 MiB of rows, whichever comes first, behind
//     the record that reaches it; the names of 65,536 scopes, or 16 MiB of them, are remembered.
//
// # Rows
//
// The first byte names the keyspace (keys.go). scope is source (u32) · backend · tenant; texts end in 00 01, and 00 in them is written 00 FF,
// so that the order of the keys is the order of the bytes. position↓ is offset and event, each as a length-prefixed
// integer with all bits turned over: the newest comes first, in 4 to 6 bytes.
//
//	h | scope | object | medium | position↓  -> evidence        every event of an object: its past in one prefix seek
//	l | scope | object | medium              -> position        of the newest event, where it is `stored`: what is there now
//	c | scope | position↓                    -> evidence        every `cleared`
//	e | scope | position↓                    -> evidence        those that confirm absence
//	k | scope                                -> nothing         it was seen
//	m | source | offset                      -> mark            how far it extends, cause, times
//	g | source | offset | n                  -> JSON            a line of gaps
//	s | source                               -> JSON            where the source stands, counters
//	r | scope | position↓                    -> evidence, …     a reading of the master that covers the scope, at its h (readings.go)
//	x | scope | object | position↓           -> nothing         that reading says nothing of the object
//	q | source | h                           -> JSON            a reading, as the record that ended it tells
//	u | source | offset                      -> JSON            what the master's counters said there
//	f | source | epoch                       -> offset          the epoch is flagged: its master changes things silently (R11)
//	v | offset                               -> JSON            where all sources stood there: a checkpoint
//	b                                        -> JSON            what the rows begin with, where the journal was pruned
//	a                                        -> applied offset
//	j                                        -> format version, id of the journal
//
// Evidence is flags u8 (stored, has id, has time, in a window of R5, ends a full batch, has a group, is a reading's), then varints:
// epoch, seq, event_id, received (ms), received - time, and the group (evidence.go): an answer needs nothing else. A medium is one
// byte for cpu and disk, else 03 and its name.
//
// What a reading of the master corrects are events of the objects at h, directly behind the record that began it; what agrees, and
// the absence of everything that it does not list, is the one row r. Objects that had an event of their own in (h, e] are known
// by their history. These rows are the only ones that are written behind newer ones, so the applier reads before it writes them.
//
// Bloom filters know the prefix up to the object (of h, l and x) or the scope (of c, e and r): split in keys.go.
//
// A `removed` deletes the live row. A clear does not: readers compare with the newest clear of the scope, and a range deletion comes
// at most once per scope and 10 minutes, because thousands of them over one scope make every seek slow.
//
// An object's key that begins with the 64 hex digits of a hash, as connectors make them, is kept as 32 bytes (appendObject).
//
// A record of a loss in the journal (TailLost) is a mark and a line of gaps for every source that it names. A reading that began before it
// and is not ended there is void: its parts, which say what it does not cover, may be among what is lost. In a repaired journal every reading
// from before the repair that began behind the loss is void too: it says how the master differed from what was known, and of that some is lost.
//
// Damage tells errors that mean a damaged index, Check compares an index with the journal.
//
// # What an index knew
//
// An index never runs ahead of what is durable. One that has applied an offset that its journal lacks knows of a loss, as the head file does. Where it
// is computed anew before a writer wrote the loss down (by a question to a directory at rest) the offset is kept beside it first, in DIR/index.head
// (known.go). It counts for the journal of its id only, and so do the rows: an index that was put in from another directory says nothing of this
// journal. Where the row that names the journal cannot be read, but the applied offset can, the offset counts: doubt that was not needed is
// no wrong answer, and a loss that nobody knows of makes some.
//
// # Pruning
//
// A journal is pruned up to a checkpoint (checkpoint.go): where sources stand is a row that is written again and again, so only there is it known
// what the past was. They lie where the journal says, every 500,000 events or 10 minutes of receive time, so that a rebuilt index has the
// same. The baseline (baseline.go, trim.go) is a copy of the rows as of the horizon that answers from it on need; live rows follow from it. An index
// of a pruned journal begins with them (load.go). Behind a prune, the index is computed anew from the baseline, or what the baseline has not is
// deleted from it (trimlive.go), whichever costs less; the rows are the same. An index that was not trimmed yet gives the same answers,
// and Check allows it the rows that are still to go.
//
// # Computed anew
//
// A rebuild (rebuild.go), and an import that brings most of the journal (Renew), know all events before the first question comes. Then the rows of
// events pass no memtable and no compaction: they are sorted outside of the database, run by run, merged, and brought into index.new/ as tables of
// the lowest level, each written once (bulk.go draws it, spool.go its file). The live rows follow from the merged history. What is
// made so is the same, key by key, as what the applier writes one by one; Check compares with the latter. It takes about 85 MiB of memory, and beside
// the tables a spool of about 70 B an event, which goes when it is done. Until index.new/ takes the place of index/, as a whole, a
// crash or an error leaves the old index as it is. Before it begins it looks how much room the disk has (room.go): without any for the spool the
// rows are applied one by one, and without any for that nothing is begun.
//
// Of 3 million events, on a machine busy with other work, a rebuild takes 3.1 us of processor time an event, all in all: 1.2 to sort runs and
// spool them, 0.6 to make rows of records, 0.5 to read and unpack blocks, 0.3 to merge, 0.3 to write tables. To apply, flush and
// compact them in the database took 6.2 us. The tables take 37 B an event, in place of 47 when settled. Since then rows are sorted by dealing
// them out (roworder.go): comparing them was a sixth of what an import costs. With that, and what journal/internal/pack gained, importing a
// million events from a .kvcap.zst takes 6.0 us of processor time an event in place of 6.7 (medians of seven, in turn, on a machine busy with much
// else; 4.1 in place of 5.2 when it was least so), of which reading the capture twice and its checksum are about 1.5.
//
// # Views
//
// A view is the index at one moment. Views that are opened between the ends of two writes share one state (fresh.go): a snapshot, where the sources
// stand, and iterators for each. Every write to the open database lies between fresh.begin and fresh.end, tells the keyspaces that it changes, and
// brings what is kept of objects up to its rows (hot.write) or forgets it before it can be seen. Two things outlive a state: what is kept of objects
// (hot.go), and what was found in the keyspaces that change rarely (remembered.go). Each says why what is kept is never what was;
// TestHotBesideWrites compares both with the rows beside records, readings, prunes and rebuilds.
//
// The iterators of a view that is closed are kept with the state for the next one, and with them the events of the object whose history was read last
// (past.go).
//
// Those who ask may keep with the state what they made of a source (View.Keep): it must follow from the rows alone, or what else it follows from
// must be looked at with each question. It goes with the state, so that it never answers for another one.
//
// The first question behind a write makes a state. Where sources stand comes from the write, the rest is remembered: to look for a row that most
// databases have not goes through all tables of L0. With 32 of them BenchmarkFirstView/open took 62 us of processor time, and takes 5 (medians of three,
// in turn); what casts doubt on a source and a scope took 4 ms for each state beside 50,000 events/s. An object that was not asked for reads each of
// these tables, 100 us: they have no filters.
//
// Objects that change all the time, as most do beside 50,000 events/s over 100,000 objects, were forgotten with each change, and read anew from rows and
// blocks that a compaction had just written: 73 us of a GET's 116. They are brought up now. A recorder on one core, with wrk on the other (make lookups,
// old and new in turn): 6,150 GETs a second, then 7,600 with objects brought up, 8,300 with what changes rarely, 10,000 to 10,500 with one
// state shared while a write is under way: on one core it is often interrupted there, and each question opened a state of its own.
//
// A lookup at a past moment is answered from memory too. Objects live for a few events, and of one that was asked for at a moment before its
// newest event all are kept (hot.go); before, each such question sought its rows, half of what it cost. Of 20,000 questions about 1,000 objects at 64
// moments (bench's hot; old and new in turn, with what the journal gained at finding moments) processor time and p50: mixed day 5.3, then 2.0 us
// (p50 4.3, then 1.7), one event a message 4.7, then 2.1 (3.9, 1.7), 12 million events and a million objects 9.0, then 2.7 (6.7, 1.7). A hit does not depend on
// how much lies behind: the rows of an object are read once, where each question used to read blocks of tables that a cache of 64 MiB does not hold. What
// is left: finding the moment and its doubts a third, what is kept of the object a fifth, what follows from it a sixth.
//
// An idle state would hold tables that are compacted away: Follow gives it up every Options.FlushEvery.
//
// # What it costs
//
// BenchmarkCatchUp, events of a cache's life, 2 cores. Rows of up to 65,536 events are sorted before they are written
// (eventrows.go), since the memtable goes on searching where it inserted last. Each line with those above it:
//
//	unsorted                                           9.9 us an event (2 million, on a busy machine)
//	sorted                                             5.9 us          (the same, as busy)
//	sorted, on a quiet machine                         291,000 events/s (8 million)
//	keys of hashes packed, upper levels uncompressed   361,000
//	65,536 events a batch instead of 16,384            380,000
//	blocks read and unpacked ahead                     408,000
//	live rows without evidence, no filters in L0-L3    488,000
//
// Behind a publisher of 50,000 events/s what a write costs is the memtable, into which few rows are inserted far from each other: 7.3 us of
// processor time an event where Follow applied each group of the journal at once (some 50 events). So it rests (Options.Beat) unless a question
// waits, on two busy cores: not at all 5.9 s of 15, 10 ms 5.8, 25 ms 4.2, 50 ms 3.3, 100 ms 2.1, 250 ms 1.8.
//
// At rest, what a question costs depends on how many tables lie on top of each other. 20 million events just imported had 221 tables in
// L0, without filters: diff of a minute 118 s, objects at a moment 42 s. Compacted at the end of an import (Settle, 20 s) they take
// 2.2 s and 2.2 s, and the index 47 B an event instead of 93. Pebble kept the values of all but the first key with a prefix apart,
// in blocks of their own; with the keys (SpanPolicyFunc) objects and diff take a fifth less.
//
// # Under load
//
// While events come faster than they are compacted, one compaction takes all of L0 into the base level, however much it is: the tables overlap
// each other everywhere, so no part can be taken alone. As L0 goes first the base level grows meanwhile, and each of these compactions writes
// all of it again: 2.3 to 2.8 GB of them at 128 million events. What is written behind one piles up, and at l0Stop sublevels Pebble holds writes
// up until it has ended: the index stood still for up to 15 s at times while 100 million events were recorded. (Pebble may tell the stall as one
// of memtables: it names the first reason only.) So from l0Deep sublevels on a second compaction may run, which merges the newest tables of L0 with
// each other, unless a receiver is behind (giveWay).
//
// In a model of 128 million events (8 million, with batches, memtables, tables and the base level of a sixteenth), in turn on a machine busy with much
// else; the processor time that the process used in the longest pause between two writes tells better than the clock, which others stop too:
//
//	                      longest pause          processor in it        sublevels       an event
//	one compaction        4.4, 0.6, 8.6 s        1.02, 0.38, 1.60 s     186, 172, 191   7.2, 8.2, 8.7 us, 51, 53, 49 B
//	a second from 64 on   3.1 (load twice that)  0.13                   90              8.4               46
//	by Pebble, from 50    0.5, 0.3               0.16, 0.11             131, 99         7.7, 8.3          48, 47
//	by Pebble, from 100   0.4, 2.0               0.11, 0.43             143, 193        7.1, 9.0          47, 50
//	a quarter of the base 2.4                    1.05                   156             6.9               49
//
// By Pebble: its L0CompactionConcurrency, which counts only what no compaction has taken yet, and which begins compactions before the first flush too.
//
// # What compactions cost
//
// Half of a flush's rows are live ones, half of these deletions. By default Pebble compacts such a table into the base level as soon as nothing else
// is due: 74 of 110 compactions while 6 million events were applied with the processor to spare (a flush each 150,000, compactions awaited). Without
// these the base level is written anew when l0Begin says so (once each, on a machine busy with other work, so that bytes tell more than time):
//
//	                                     written by compactions    processor
//	by default, two sublevels            3.6 GB                    10.8 us an event
//	not for deletions, two sublevels     2.8 GB                    9.2
//	not for deletions, four (l0Begin 8)  1.6 GB                    6.3
//	... three, memtables of 48 MiB       2.1 GB                    7.7
//
// Of a mixed day, appended and indexed at full speed (bench: track), a million events take 4.7 us an event in place of 6.0, at 360,000 events/s in place
// of 290,000 (medians of three, in turn, on a machine with little else to do; sealing has 0.3 of it), and 3 million 6.6 in place of 8.0. Of 3 million
// l0Begin makes no difference: compactions are behind, and take all of L0. Of one million it does: fewer of them begin.
//
// What it costs: a walk over what is live steps over rows that are dead, while the base level has them, as it did under load before. At rest, of 130,000
// live objects, 32 ms in place of 11 (346,000 rows in place of 130,000). A question about an object that was not asked for may look into two tables
// more: 16 us in place of 14 (20,000 of them, three sublevels in place of one).
//
// Tried without gain in the model: memtables of 64 MiB, L0 thresholds of 8 to 12 with larger base levels (compactions are behind there), more
// compactions at once always, smaller splits of flushes (FlushSplitBytes of 1 and 2 MiB: the tables' ends lie elsewhere each time).
package index
