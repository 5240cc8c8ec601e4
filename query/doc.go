// Package query answers questions from a journal and its index:
//
//	Lookup                  where objects are or were           from the index
//	Objects, CountObjects   which objects of a scope were there  from the index, every object of the scope
//	History, Why            what touched an object, and what it means   from the index, a page at a time
//	Diff                    what two moments differ in          the journal between them, and the index at both
//	Lifetimes               how long objects stay               from the index, every event of the scope
//	Gaps, GapsSummary       what was lost, and what it put in doubt   from the index, one pass for all losses
//	Log, Activity, Export…  what was recorded                   from the journal, block by block
//	Stats                   how much there is
//
// All of them stream: what they hold does not grow with the journal, nor with the number of objects.
//
// # What an answer claims
//
// An answer speaks of the stream: what the publisher had announced by the moment. "confirmed" is never wrong about that; a
// change that was still in the publisher's queue comes later. "uncertain" gives the last known state, and the doubt.
//
// # How it is found
//
//  1. The moment becomes a position of each source's stream (engine.go): from the journal's rows of times and numbers, and the headers
//     around it, which also say whether it is proven that nothing is missing before it (R8).
//     A position that is a record of a loss of the journal itself stands for all records of that loss (lost.go): each marks one source.
//  2. For each medium of the object, the index gives the newest event at or before the position, and for its scope the newest
//     clears; for the source, the newest mark.
//  3. decide (judge.go), a pure function, compares positions (R1, R2, R7). Nothing is rewritten when doubt comes or goes.
//  4. Where that leaves a doubt, a reading of the master may resolve it (R9), and where the master changes things without an event,
//     presence is confirmed by readings only (R11): readings.go.
//
// # What it costs
//
// BenchmarkLookup, CPU time a question (150,000 events of 40,000 live objects, 64 a message), old and new in turn on a machine with ten to twenty
// times the work it can do, so that caches are cold; medians of 3 to 6 runs. Before: shared views, objects and moments kept in memory. After: an
// Asker, which has its memory already; the default moment and what is known of scopes, kept with the state of the index (settled.go); rings of
// objects; and of many questions, those that must read rows in the order of the rows:
//
//	                                              before                       after
//	now, an object that was asked for             10.4 us  21 allocations       2.8 us  none
//	the same by Engine.Lookup                                                   6.4 us  13
//	now, 1,000 of them at once                     3.3 ms  5,020                1.25 ms none
//	the same by Engine.Lookup                                                   2.3 ms  2,016
//	now, an object that never was                  8.2 us  23                   1.9 us  2
//	at 64 moments, 1,000 objects                  19.4 us  21                   4.5 us  2
//
// On a quiet machine, wall time: a hit 1.4 us, 1,000 at once 0.56 ms, an object that never was 2.6 us, at 64 moments 3.9 us.
//
// A publisher time that is asked about for the second time in one state of the index is kept with the state too, with what casts doubt on it and what
// is known of its scopes (settled.go). At 64 moments (400,000 events of 100,000 objects, nothing else on the machine, in turn, medians of three):
// 1.66 us before, 1.10 after, and no allocation where there were two. Other questions take what they took.
//
// What is left of a hit is memory that is not in the processor's caches: the question, the place and the entry of its object, a miss each. Other
// questions (400,000 events; 30 times the work), before and after views and moments were shared:
//
//	at any moment                                        299 us     96 us
//	at any offset                                        262 us    137 us
//	history of an object                                  76 us     43 us
//	a message by its number, before journal.LoneBySeq    354 us    164 us
//
// A message by its number takes 3 to 15 us now, where its block is kept (package journal, What is kept in memory).
//
// A history read the object's rows four times, each with an iterator of its own or a seek, and looked for clears and marks that mostly are not there. Now
// the rows of an object with few are read once (index.View.Events), which clear and mark is the newest is remembered, and all lines are
// made in the memory of the first. BenchmarkLookup/history (200,000 events, in turn, on a busy machine; processor time a question):
//
//	before                                               34.5 us   106 allocations
//	no look for clears and marks, rows read once         14.4 us    51
//	lines in the same memory                             10.2 us    15
//
// A third of what is left is the seek. bench asks for 5,000 objects of a mixed day, among 1,000,000 events: p50 47 to 50 us before, 11 now, and
// 15 in SQLite, in the same run. An object with more than 128 events is read a page at a time as before, but its lines cost less
// too: BenchmarkHistoryHot/newest takes 147 us in place of 195, all its 10,000 lines 10.7 ms in place of 16.2. A mark or a clear behind an object's first
// event still costs an iterator.
//
// All of one question is read from one view of the index, so a running recorder does not move it meanwhile.
//
// To add a question: its engine method here, its parameters in httpapi (questions.go lists them), its command in cmd/kvjournal.
//
// # Before the horizon
//
// Of a pruned journal nothing is answered about moments before its horizon: a *PrunedError names it (horizon.go). Spans without a beginning begin
// there; only losses are listed from the beginning on. From the horizon on answers are those of the whole journal, held by TestPruneModel,
// but that objects which a proof of absence had made gone before it are not listed any more (--state absent or any), and that, where a key is asked
// for without its backend, a scope in which it was only such counts as one in which it never was.
//
// The answers are held, each one, against query/internal/oracle, which was written from the rules alone.
package query
