// Package reconcile resolves doubt against the master (rule R9 of DESIGN.md): it reads what the master has, compares it with what the
// index knows, and has the difference written into the journal.
//
// # A reading
//
//  1. begin (attempt.go): where the source stands (base), one poll of the counters (first), then the record reconciliation_begun: its
//     offset is h. A master that does not answer leaves no record.
//  2. read: the listing, into one compact table, sorted (Listing). Or a snapshot.
//  3. compare (plan.go): the objects that were known at h, in the order of their keys, beside the listing. What is not listed is decided
//     here; the rest is noted in the table: what is known of it, and whether it is to be asked. Asked are the listed objects that are
//     in doubt, those not known, and those confirmed absent; in an audit all.
//  4. ask: the media of those, 1,000 at once. The view of the index is closed by then.
//  5. wait: a poll gives n; e is the first batch of fewer than 64 events whose predecessor has a number above n + 1, or, without
//     traffic, the record of the second of two settled polls (sound.go).
//  6. end (finish.go): what is said of objects with an event of their own in (h, e] is left out; the parts and the end are appended
//     together, if nothing broke the stretch since h.
//
// Whatever goes wrong before the last step changes nothing: the record of the begin is left alone.
//
// # What is written
//
// One row for the scope says that all that was known at h is so, and that nothing else is there. Beside it only: corrections of one medium
// each, and exceptions, of which the row does not speak (word.go, weigh):
//
//	                                    in doubt          confirmed
//	the master says the same            the row           the row
//	the master says otherwise           correction        exception; a correction if an earlier reading agrees
//	the master says nothing             exception         exception
//	not listed                          as "absent on all media"
//	key with a newline                  exception         nothing
//
// The master says nothing where it answers "ok" and names no replica, where a listed key is not found (it went meanwhile, or is a
// piece of a key with a newline), and of keys that it cannot be asked for: with a comma, no valid UTF-8. It speaks of cpu and disk only: an
// object with other media in doubt is excepted, and has a correction for each of the two; if it is gone, one for each of the others too.
//
// # Invariants
//
//  1. What a reading says of an object was so at h: as the publisher had announced it by h, but for what was lost. The reading saw it
//     later; but all that it could see has been announced by e, nothing was lost in (h, e], and the object has no event there.
//  2. (h, e], and what follows until the end is written, is one connection, one epoch, one backend_id, without a mark and without a
//     clear of what is read.
//  3. What is confirmed is corrected only if two readings at least 5 s apart say the same of the medium, and the object has no event
//     from the first h to the second e, and nothing broke the stretch between (R9). That flags the epoch (R11).
//  4. One source has one reading under way at a time.
//
// # Settled polls, stricter than R9 says
//
// R9 takes two settled polls after the reading "whatever their sum n". A message that is sent while the reading is made and never
// arrives would then go unseen: its change may be younger than what the reading saw. So either messages came since base and the last of
// them is n, or none came and the counters are those of the poll before the reading: then nothing was sent since, and what was lost
// earlier is in what the reading saw (TestSettled, TestSettledRule). What it rests on: a publisher does not let a change rest for as
// long as the polls are apart, 1 s.
//
// # Seams
//
// Master, Log and Index (seams.go) are all that is called, so that tests stop between any two steps. SourceLog and SourceIndex are the
// real ones; package query gives the Judge, because what is in doubt must be decided as answers decide it, and index may not import query.
//
// # Snapshots
//
// A snapshot is a list of objects from elsewhere: a script beside the master, say, that knows other tenants. It takes the place of listing
// and media, and may cover any tenant; the master's counters are asked all the same, for nothing else tells when all that it could see
// has been announced. For the same reason it must be taken between h and that poll. A file that simply lies there may be older than h, and
// nothing in it or about it (its time of modification tells when it was written, not when its content was true) proves otherwise. So its
// first line must name h, which is told by SnapshotFile.Ready and cannot be known before; no other file is read. It must be written beside
// its place and renamed into it. If the reading is overtaken, a new snapshot must be taken.
//
//	{"snapshot":1,"begun":H,"tenants":["default","t1"]}           tenants that it holds whole, where they may be empty; or tenants_base64
//	{"tenant_id":"t1","object_key":"k","media":["cpu","disk"]}    each object once; or tenant_id_base64, object_key_base64; tenant_id: default
//	{"end":1}                                                     number of objects: the file is whole
//
// A tenant that is named, or has an object, is covered: what is not in the file is absent there. An object without media is absent. A
// backend_id may be given, and must be the master's own. Media are cpu and disk.
//
// # When
//
// schedule.go: 300 ms after the newest mark, at most one a second, after errors of the master 0.3 to 30 s later; at the start; an audit
// every 15 min; 5 s after one that contradicted the stream. A reading with traffic leaves objects in doubt that had an event meanwhile on
// one medium only: up to five more follow it, 1, 2, 4, 8 and 16 s later, while doubts are left.
//
// # On demand
//
// A reading that is asked for (Runner.Read) waits for one that is under way, and is made again where it does not hold, for Timing.Patience, 2 min,
// at most; then the error says what was in the way (turn.go). What a single call may take is the client's: a listing that is silent for a minute
// is given up, and the rest behind a call that was not answered is 30 s at most. Before that a master that hung on a listing kept the
// next reading waiting for 5 min until it was given up, and for 5 more until it had rested as long: one of 32 commands of a soak took 555 s.
//
// # What it costs
//
// BenchmarkPlan, 1,000,000 keys of 82 bytes, 2 cores, one used: listed and sorted in 0.6 s, compared with 500,000 objects in 0.7 s, the
// answers taken in 1.4 s, 678 allocations. The listing takes 102 MB; corrections about 90 B each, in parts of at most 256 KiB, until
// they are written; contradictions at most 16 MiB of keys. BenchmarkTouched, looking for
// events of some of 1,000,000 objects: 81 us an object by a search each; 11 us where each tenth is looked for, 5 us each second, by stepping over
// the objects between.
//
// make doubts, 1,000,000 objects in doubt under 50,000 events/s, 2 cores shared with the simulated master: 56 s, of which the master
// answered for 21 s and rested as long; 49,900 events/s recorded meanwhile, 458 MiB. With the understanding of the replies
// counted as the master's time, and waited for again, it was 72 to 80 s.
package reconcile
