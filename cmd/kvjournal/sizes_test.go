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
	for text, want := range map[string]uint64{"1": 1, "7kB": 7000, "0": 0, "0.4B": 0, "": 0} {
		if got, err := parseSome(text); got != want || (err != nil) != (want == 0) {
			t.Errorf("some, %q: %d, %v", text, got, err)
		}
	}
}
