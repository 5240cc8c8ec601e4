//go:build race

package journal

// questions scales the number of random questions: under the race detector Pebble checks its invariants too, and a
// read costs fifty times as much.
func questions(n int) int { return max(1, n/25) }
