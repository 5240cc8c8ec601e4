package main

import "testing"

// TestLeastFree: what is given counts; the default gives way on a small disk, and is asked of a directory that is still to be made.
func TestLeastFree(t *testing.T) {
	f := recordFlags{dir: t.TempDir() + "/not/yet", minFree: "100TB"}
	if got, err := f.leastFree(true); err != nil || got != 100e12 {
		t.Errorf("given: %d, %v", got, err)
	}
	total := diskOf(f.dir)
	if total == 0 {
		t.Fatal("the disk has no size")
	}
	if got, err := f.leastFree(false); err != nil || got != min(100e12, total/20) {
		t.Errorf("by default: %d, %v", got, err)
	}
}
