// Package near tells which of some names was most likely meant by one that is none of them. It does no I/O, and what it costs is bounded
// whatever it is given.
package near

import "strings"

// longest is how long a name may be, in bytes, to come near to one that there is.
const longest = 64

// Nearest is the one of names that takes the fewest changes of a letter to make of name, the first of several; near tells that it
// was most likely meant.
func Nearest(name string, names []string) (like string, near bool) {
	name = name[:min(len(name), longest+1)]
	best := -1
	for _, n := range names {
		if d := distance(name, n); best < 0 || d < best {
			best, like = d, n
		}
	}
	return like, best >= 0 && best <= within(name) && len(name) <= longest
}

// within is how many changes of a letter a slip is at most.
func within(name string) int { return min(2, (len(name)+1)/4) }

// Meant are those of names that may have been meant by name, in their order: a slip away, or, as "tenant" of "tenant_id", with it as a
// word of theirs, or, as "keys" of "object_key", with a word that is a slip away where none else is near.
func Meant(name string, names []string) []string {
	if name == "" || len(name) > longest {
		return nil
	}
	name = strings.ToLower(name)
	var slips, words []string
	for _, n := range names {
		switch {
		case distance(name, n) <= within(name), strings.Contains("_"+n+"_", "_"+name+"_"):
			slips = append(slips, n)
		case hasNear(strings.Split(n, "_"), name):
			words = append(words, n)
		}
	}
	if len(slips) > 0 {
		return slips
	}
	return words
}

func hasNear(words []string, name string) bool {
	for _, w := range words {
		if distance(name, w) <= within(name) {
			return true
		}
	}
	return false
}

// distance is how many letters must be put in, taken out or replaced, or neighbours exchanged, to make b of a.
func distance(a, b string) int {
	row, above := make([]int, len(b)+1), make([]int, len(b)+1) // above: the row before the last
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		row, above = next, row
	}
	return row[len(b)]
}
