//go:build !race

package journal

func questions(n int) int { return n }
