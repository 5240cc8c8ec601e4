// Package query answers questions from a journal and its index: where an object is or was (Lookup), what was lost (Gaps), and how
// much there is (Stats).
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
//  2. For each medium of the object, the index gives the newest event at or before the position, and for its scope the newest
//     clears; for the source, the newest mark.
//  3. judge (judge.go), a pure function, compares positions (R1, R2, R7). Nothing is rewritten when doubt comes or goes.
//
// All of one question is read from one view of the index, so a running recorder does not move it meanwhile.
//
// The answers are held, each one, against query/internal/oracle, which was written from the rules alone.
package query
