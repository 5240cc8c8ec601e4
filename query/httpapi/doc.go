// Package httpapi serves the questions of the command line over HTTP, and asks them.
//
//	owner    ── DIR/kvjournal.sock ──▶ Handler ─────────────────────────────┐
//	others   ── --listen ──▶ PublicHandler: Host, rights, compression ──────┼──▶ routes.go ──▶ questions.go ──▶ query.Engine
//	serve    ── --listen ──▶ PublicFront ──▶ service.Front ──▶ Handler ─────┘
//
// A running recorder listens on a unix socket in its data directory that only its owner can open; the command given the same --dir
// talks to it. Others come by an address (Listen). Both are answered by the same routes:
//
//   - The JSON is that of the command line, one value a line; openapi.yaml describes each, and openapitest/ holds them against it.
//   - An answer is never cut without a word: what fails before the first line is a Problem (RFC 9457), what fails behind it a last line
//     {"error":…}, and what was read from a directory that a writer claimed meanwhile is not sent (Guarded).
//   - Others may ask (Read); having a master read takes a right of its own (Reconcile); what writes or deletes files, or names files of the
//     machine, is the owner's alone (Local).
//   - Nothing that is asked is ignored: params notes which names a question asked for, and refuses all others with those that there are
//     (unknown.go); so are fields that a posted question does not have, and bodies of another kind (body.go).
//   - The log as server-sent events has positions as ids (events.go), so that nothing is missed and nothing comes twice.
//
// Bounds: 256 questions at once and 512 connections, each of socket and address; 256 KiB of header, 24 MiB of a question or of the parameters
// of one, 65,536 questions of an array, any number of lines; 10 s for a header, 30 s for each piece of a body, 10 min for each piece of an answer to
// be taken, and for the whole of it where others ask, but for followers.
//
// # What it costs
//
// BenchmarkLookup over loopback TCP, 400,000 events, CPU time of a request with the asker's in it, on a machine with far more work than it can do
// (medians of wall time say nothing there). Before: encoding/json read the questions, each answer had buffers of its own:
//
//	                              before               after
//	GET of one object             89 us, 43.7 KB       69 us, 7.8 KB allocated
//	POST of 1,000, lines          8.9 ms, 2.3 MB       5.7 ms, 1.9 MB
//	POST of 1,000, an array       12.9 ms, 4.6 MB      8.0 ms, 3.0 MB
//	POST of 1,000, to gzip        14.1 ms, 150 KB      7.7 ms, 162 KB sent (of 914)
//
// With the engine's faster reads, on a quiet machine, p50 of wall time: a GET 26 us, 1,000 lines 4.1 ms, an array 3.8 ms, gzip 6.3 ms.
//
// What is left is mostly the engine's, and the asker's. A recorder that wrk asked took some 30 us a GET.
package httpapi
