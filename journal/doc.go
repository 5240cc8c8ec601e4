// Package journal is the log: everything that was received, exactly as received, and every fact that can change an answer, in
// the order in which it happened. The index is computed from it and holds nothing that is not in it.
//
// # Invariants
//
//  1. An offset names one record for ever: 1, 2, 3, … over all sources, never reused. Offsets that were acknowledged and
//     then lost with a damaged disk stay unused; a TailLost record says so. In a repaired journal it stands at the last of them.
//  2. A record's raw bytes come back exactly as they were received.
//  3. Nothing is shown to a reader (Block, NextBlock, Durable) before it is durable: a reader never knows what a crash can
//     take back. Pebble shows a write before its log is synced, so readers go by Durable, not by what they find.
//  4. Offsets follow each other without a hole, but where a TailLost record behind it tells of one: a reader that meets another gets an error.
//  5. Continuity is judged once, before a message is appended; its verdict is in the header, and nothing that reads the
//     journal judges again.
//
// # Durability
//
// Durable (what `stats` shows as durable_offset) is moved after the write-ahead log was synced. Up to there everything
// survives a crash of the process and of the machine. Behind it are at most two commits: what was received in the last
// few milliseconds.
//
// A commit on a full disk waits for room where Options.RoomUntil says so; any other failed write is told to Options.Fatal, and is the last
// (datadir.Guard). A new database appears by a rename, whole or not at all.
//
// # Bytes
//
// DIR/journal/ is a Pebble database. The first byte of a key names its family (keys.go); numbers in keys are big-endian, times
// have their sign bit turned over so that their order is the order of the bytes.
//
//	a | generation | number                       -> block of a baseline
//	b | offset of the first record                -> block
//	c | source                                    -> offset of its newest message, continuity state
//	i | source | sha256 of a capture, hex         -> JSON: how much of it was imported
//	m | name                                      -> id, totals, sealed (how far the sealer came), origin (JSON: Origin), baseline (JSON:
//	                                                 the horizon)
//	n | source                                    -> JSON: name, endpoints, masters
//	o | source | first offset of a block          -> the time of its time row, if it has one
//	p | source | lowest time                      -> highest time, newest offset: publisher time passed twice
//	s | source | epoch | first seq | first offset -> nothing
//	t | source | highest time so far | first offset of the block -> nothing
//
// A block is a run of consecutive records. Rows of the families o, s and t stand beside it, written in the same batch, one per source
// (and epoch) that it holds: so a sequence number and a moment are one seek, and a scan of the headers of one block.
//
//	+---------+-------+---------+-----------+-----------+-------------+=======+================+---------+
//	| version | flags |  count  | table raw | table len | payload raw | table | packed payload | crc32c  |
//	|   u8    |  u8   | uvarint |  uvarint  |  uvarint  |   uvarint   |       |                | u32 LE  |
//	+---------+-------+---------+-----------+-----------+-------------+=======+================+---------+
//
// flags: 1 the table is a zstd frame; else it is stored as it is. 2 the payload has shapes that the first programs do not know. The checksum covers the block's key and
// all bytes before it. The table is stored by column, because neighbours in a column hardly differ; first the length of each
// column, then the columns, each value a difference to the record before unless said otherwise:
//
//	kind u8 and flags u8 (no difference) · source · epoch · seq · time (ms) · received (ns) ·
//	number of events (no difference) · payload length (no difference) ·
//	rare: what few records have: damage, mark, gap, stale, frame lengths
//
// The payload unpacks to the records' raw bytes, one behind the other, payload raw of them; journal/internal/pack draws its own
// bytes. Sealed, it takes 34.9 B an event with 64 events a message and 36.0 B with one (raw 380 and 400), 32 of them the digits of the key; one zstd
// frame of the raw bytes instead took 46.9 and 50.4 B (mooncakesim --capture, 1,000,000 events, blocks of 256 KiB). A message of the usual shape (an empty frame, eight bytes of seq,
// a payload) is only its third frame here, since the rest is in the table.
//
// The table is compressed apart from the payload so that a search by time or number, which reads headers only, does
// not decompress messages.
//
// # Blocks and the sealer
//
// A commit takes all that arrived during the commit before. Full blocks of it are compressed beside the appending goroutine (packing.go), two at
// once at most; they come into the commit in their order, and a commit is whole or not at all. Of what the appending goroutine does for a group of
// 64-event messages a third is reading them (event.Batch.Scan), two fifths laying them out (pack), and a fifth the commit; compressing them
// takes another third as long, beside it.
//
// Under load a commit fills blocks of Options.BlockRaw; under
// light load a block holds one message, and the sealer merges small blocks later, by the rules in seal.go. There is one format
// for both. What is small is not compressed before it is merged (minTable, pack.minSmall), the sealer looks when a quarter of a block is there, and
// reads each block that it merges once. With that, appending a mixed day (bench: stretches of 1 to 21 events a message, 8 messages a commit, between
// stretches of 64) takes 1.90 us of processor time an event in place of 2.25 (medians of three, in turn, on a machine busy with other work). Of what is
// left a fifth is the sealer's, and a fifth the system's for 3,900 synced commits of 1,000,000 events. A block has 8,192 records at most: records
// without bytes (empty frames, connection events) would fill it for ever.
//
// # Why the families are in this order
//
// Block keys only grow. With 'b' the first of all, the key range of a freshly flushed table is [newest blocks … rows], and
// overlaps only the rows of older tables: compactions rewrite rows and leave blocks alone. With blocks last, every flush
// would overlap all blocks ever written.
//
// # What is kept in memory
//
// Finding a moment or a number reads the headers of a block, 100 us of decoding where it holds a message an event. They are kept (16 MiB): records
// never change, so what is kept answers for the records that it has; for those that the sealer added to the block since, it is taken if the block
// that the database has is of the same length and checksum. Moments are kept by the ranges of time that a block's messages lie at (8 MiB, moments.go),
// so one question of a block answers for all times in it.
//
// Moments were kept by the millisecond (8,192 of them), and each other time took three iterators, two of which read a block to know its length, and the
// one before it, since SeekLT looks there too. Processor time of a lookup of any object at any time (bench's uniform, 20,000 questions, old and new
// in turn): mixed day 53 us, then 10 (p50 41, then 6.4, p99 257, then 69); 64 events a message 31, then 8.6; one event a message 17, then 6.2. Of 12
// million events of a mixed day, of which most blocks are asked for once: 105, then 73.
//
// Blocks of which single records were read are kept opened (Options.MessageCache, 32 MiB; openedblocks.go): the table and the columns of the
// payload unpacked, with marks in them, 16 records or 32 messages and events apart, so that one record is read from the mark before it. That
// takes 60 to 90 B an event, where the records as received take 380 to 400. Which block holds an offset or a sequence number is known there without the
// database, for Record and BySeq too. BenchmarkGet, any of 1,000,000 events in messages of 64 or of 300,000 messages of one; processor time of the whole
// process, collecting garbage included, two runs in turn on 2 cores:
//
//	                                        64 events        1 event
//	each block read and decoded, before     80 to 90 us   100 to 103 us   40 allocations
//	opened blocks, those of 32 MiB kept     32 to 34 us   4.3 to 4.8 us   17 and 1: of those of 64, two fifths are not kept
//	opened blocks, none kept                88 to 90 us   111 to 123 us   42 to 44
//
// bench, get, 20,000 messages, p50 wall time: 72 us before and 15.1 now with 64 events a message, 79 and 3.2 with one, 79 and 6.1 on a mixed day. A hit
// with 64 events is 24 KB of MessagePack to write.
//
// The limit that remains is a block that is not kept: 256 KiB of messages are opened to read one of them. With one event a message a third of that
// is reading over all messages for the marks, a quarter unpacking zstd, a fifth the table, a sixth garbage, a twentieth the database
// and the checksum. So who reads any of far more messages than fit reads each as slowly as before: smaller blocks (Options.BlockRaw) or more
// memory are the ways out. A program that keeps messages as they come reads those in 5 to 25 us, from eleven times as many bytes.
//
// # The horizon
//
// A pruned journal begins at its horizon H. What came before is gone, but for the blocks that hold H itself, the newest message
// of each source and the newest mark's record, which are read to go on from them (Kept) and shown by nobody. A baseline stands for it: the rows of
// the index as of H, as far as questions about moments from H on need them (index/baseline.go). Its blocks lie in the family a, before all
// others, so that tables of records never overlap them; the row `baseline` makes them current, in one synced batch with the
// deletion of the records: a crash leaves the old horizon or the new one, and what was not made current is swept at the next start.
//
//	+---------+-------+---------+==========================================================+---------+
//	| version | flags |   raw   | rows: key length uvarint, key, value length uvarint, value | crc32c  |
//	|   u8    |  u8   | uvarint | (flags 1: a zstd frame)                                  | u32 LE  |
//	+---------+-------+---------+==========================================================+---------+
//
// The checksum covers the block's key and all bytes before it; the row has one over all blocks' own. Rows are in the order of their keys, up to
// 256 KiB of them in a block.
//
// # The head file
//
// DIR/head holds the newest durable offset, rewritten at most once a second (head.go). At Open it and the index's applied offset, if that is an index
// of this journal, are compared with the newest block: if either knows more, the tail of the log was lost, and Open writes that down as a record, which
// marks every source, before anything else is appended (torn.go). A journal that is open for reading says what that record will.
//
// What a master changes without an event is true of all its epoch (R11), and what told of it may be among what is lost: so the epochs of each source
// with a master are in doubt. The row that names it lies in a table, not in the log alone, before the first record that supposes it; and the head
// file has a sum over the sources and which of them have a master. Where that is another one than the rows give, or is not known for the end that is lost, some
// row is lost too, as where an older copy of journal/ was put back: then each source may have had a master, and a source that is made anew at that start
// may be one that was there.
//
// # Copies
//
// A checkpoint (checkpoint.go) is the journal as it was at some commit, with the same id: nobody appends to it. A copy that is to be
// recorded into gets an id of its own first (Fork), because from there on its offsets name other records than the same offsets of the
// journal it was copied from: index and head file of the one, put beside the other by whatever mistake, are refused by the id.
// Nothing else needs to be written down: a recorder that begins on the copy was not there before, as after any other pause, and its first
// batch is a mark (recorder_down), so what the journal does not know of is in doubt by the usual rule.
//
// The head file is written when the database is made, before the first record: a directory with records and without it has lost it.
//
// # Logs at rest
//
// Pebble keeps write-ahead logs that it needs no more, to write over them, up to 128 MiB, until it is opened again. Close removes them where
// all that was written lies in synced tables: nothing was written, nor ingested, since a flush began that worked (emptylogs.go). The newest
// log stays, empty. So a directory that was recorded into and closed in good order is its tables and little more.
//
// # Opening behind a crash
//
// What a crash leaves in the logs Pebble reads into memtables and writes as tables before Open returns; so the time grows with what is not in
// tables, two memtables at most. Before that the logs' beginnings, the manifest and the head file are looked at (intact.go: 0.8 ms, and 1.6
// while each log had a buffer of its own), and where there are less than 4 MiB of logs all is opened for reading first. Then come 11 syncs, each of
// which waits for the one before: nine of Pebble's (the directory above, the table, its directory, the manifest, its directory, its marker, the log,
// the options and their directory), the head file and its directory. They were 22 while a database with a log was opened twice
// (datadir.OpenPebble). Until the newest message is known, a new process each time, before that and since, in turn; milliseconds: the least of 15 on
// a quiet machine, whose syncs take 0.2 ms; the median of 9 beside other work on the same disk, of 7 at 29 MiB, and of the processor time of these:
//
//	                         quiet        beside others   processor   syncs
//	2 MiB of logs          17.0   13.9      64     34     19.4  12.4   22   11
//	10 MiB                 39.6   35.3      85     65     52    48
//	29 MiB                                 151    118     93    89
//	2 MiB, with the index  20.6   17.6      70     61     23    20     29   18
//	10 MiB                 46.4   41.4     125     82     71    58
//
// What is left is 2.7 ms of processor time a MiB of logs: of 116 in a profile at 29 MiB, 25 to fill memtables, 20 of them page faults of
// memory that is new; 16 to read the log; 28 to sort and lay out the tables, 44 to write them. Pebble offers no way to leave that to later. Smaller
// memtables would bound it, and compact more for as long as is recorded. The index is not opened for writing before the journal is known to be whole,
// though both at once would save some 3 ms: what is damaged is found before anything is changed.
//
// A command at rest pays this without the tables and syncs. `lookup` of one object in a directory that was closed in good order, the whole process:
// 16.4 ms of processor time, 13.3 since the index, whose log then holds 11 bytes of an end, is opened once; 8 are those of a program
// that says its version (loading libraries, initializing packages). Three opens are the rest, 1 to 2 ms each: of the journal, of the index to see how
// far it is, and over that in memory.
//
// # Damage
//
// Pebble finds what its checksums cover. What it takes for an end instead (a manifest or a first log cut short, a log or a marker that is
// gone) is looked for before and after it opens (intact.go). Check reads everything, row by row in both directions (check*.go), and behind what
// cannot be read it goes on with the next block of a table that is whole (checkholes.go): so each hole is named exactly. Repair reads
// tables and logs without Pebble (package pebblefile), keeps the blocks, which check themselves, and writes a new journal (repair*.go). A
// TailLost record's frame:
//
//	+-------+------+================================+ +---------+
//	| first | last | of each: source u32, epoch u64 | | through | if a repair found it
//	|  u64  | u64  |                                | |   u64   |
//	+-------+------+================================+ +---------+
//
// Of a pruned journal Check reads the baseline too, and asks for no offset before the horizon. Repair keeps the baseline if it is whole, and
// takes all before the horizon for lost if it is not.
//
// All numbers of the frame are big-endian. first and last are offsets. Each source named is marked like the record's own; an epoch that is not 0 is flagged as
// that of a master that may change things without an event (R11), since what would have told may be lost. through is where the journal ended
// when it was repaired: readings of the master between the loss and there say how it differed from what was known, of which some is lost.
package journal
