package main

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "500000": 500000, "1GiB": 1 << 30, "1.5 GiB": 3 << 29, "100GB": 100e9, "100gb": 100e9, " 7 MB ": 7e6, "12 B": 12, "2TiB": 2 << 40, "1KiB": 1024, "3kb": 3000,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GB", "-1", "-1GB", "NaN", "Inf", "1e30", "5 XB", "1GB2", "0x10 GB z"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

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
