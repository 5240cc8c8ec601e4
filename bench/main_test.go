package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/bench/report"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ args, err string }{
		{"--rounds 0", "at least one round"},
		{"--lookups 3", "10 lookups"},
		{"fast", "unexpected argument"},
		{"--contenders nobody", "no contender"},
		{"--workloads lunch", "no workload"},
		{"--growth 10,-5", "from 1 on"},
		{"--growth 30,10 --seed 2", ""},
		{"--growth 10 --contenders raft-wal", "does not know where objects are"},
		{"--growth 10 --contenders kvjournal,sqlite", "one contender"},
	} {
		f, err := parse(strings.Fields(c.args))
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v", c.args, err)
		case err == nil && (f.growth[0] != 10 || f.contest.Objects != 1_000_000):
			t.Errorf("%s: %+v", c.args, f)
		}
	}
}

// What was measured can be drawn again.
func TestRedraw(t *testing.T) {
	dir := t.TempDir()
	var s report.Samples
	s.Add(report.Base, "synced", "append/64", "rate", "events/s", 1)
	if err := report.WriteJSON(filepath.Join(dir, "latest.json"), s.Results()); err != nil {
		t.Fatal(err)
	}
	f, err := parse([]string{"--redraw", "--out", dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "append.svg")); err != nil {
		t.Error(err)
	}
}
