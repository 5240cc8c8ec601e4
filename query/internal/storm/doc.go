// Package storm crashes and breaks a whole data directory, and looks at what is left: the journal, the index, and the answers.
//
// A run (run_test.go) is a random stream of the oracle, recorded in steps: append, seal, index, flush, read the master, prune, back up, close and
// open again, rebuild, import (steps_test.go: one more step is one more line in the table). It is made
//
//	TestCrashPoints   on a memory filesystem that loses power before each write, sync, rename …, with a part of what was not synced
//	TestEachFault     on one whose i-th operation fails, for each i, once or from then on, with EIO, ENOSPC, EACCES and EMFILE
//
// and what is left is held against what must be there (check_test.go): everything acknowledged, with its offsets and bytes; nothing that was
// never appended; answers at several moments and gaps as the oracle has them, before and behind a rebuild of the index; and
// then the stream goes on, as if nothing had been.
//
// KVJOURNAL_POINTS says how many moments and operations are tried (`make crash POINTS=10000`), spread evenly over as many runs as that takes;
// KVJOURNAL_SEED repeats a run.
package storm
