package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query/backup"
)

// reportOf is the one line of a backup's or a restore's JSON.
func reportOf(t *testing.T, r result) backup.Report {
	t.Helper()
	lines := r.answered(t)
	oneCompactValue(t, lines)
	var report backup.Report
	if len(lines) != 1 {
		t.Fatalf("%q", lines)
	}
	if err := json.Unmarshal([]byte(lines[0]), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// Backups of a recorder under load hold what was acknowledged, answer as the truth says, and cost the recording nothing. What is
// restored can be recorded into while the original goes on: what was published between is in doubt in it, and nothing is wrong.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "data")
	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Rate, o.Duration = 2000, 10*patience
		o.Store.Objects = 1500
	})
	rec := record(t, dir, s.Endpoint())
	connected(t, dir, true)
	s.heard(t)
	s.run(t)
	events := func(dir string, more uint64) {
		t.Helper()
		before := stats(t, dir).Events
		eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > before+more })
	}
	var last backup.Report
	for i := range 3 {
		events(dir, 2000)
		before := stats(t, dir)
		last = reportOf(t, kvjournal(t, "backup", "--dir", dir, "--to", filepath.Join(tmp, fmt.Sprint("backup-", i)), "--output", "json"))
		if last.DurableOffset < before.DurableOffset || last.Events < before.Events || !last.Live || last.Compared.Records == 0 || last.Linked == 0 {
			t.Errorf("%+v of a recorder that had acknowledged offset %d, %d events", last, before.DurableOffset, before.Events)
		}
		if st := stats(t, last.Dir); st.DurableOffset != last.DurableOffset || st.Events != last.Events || st.Recorder != nil {
			t.Errorf("the backup says %+v of itself, want %+v", st, last)
		}
	}
	events(dir, 1500) // what the backup does not hold
	restored := filepath.Join(tmp, "restored")
	r := reportOf(t, kvjournal(t, "restore", "--from", last.Dir, "--dir", restored, "--output", "json"))
	if r.DurableOffset != last.DurableOffset || r.Origin != last.JournalID || r.JournalID == last.JournalID || r.AppliedOffset != r.DurableOffset {
		t.Errorf("restored %+v of %+v", r, last)
	}
	again := record(t, restored, s.Endpoint())
	connected(t, restored, true)
	events(restored, 2000)
	s.stop()
	s.wait(t)
	for _, d := range []string{dir, restored} {
		quiet(t, d)
	}
	rec.stop(t)
	again.stop(t)

	truth := some(readTruth(t, &s.truth), 4)
	objects := universe(readJournal(t, dir).objects, truth)
	for _, d := range []string{dir, restored, last.Dir} {
		var sum tally
		for _, n := range judgeAll(t, d, truth, objects) {
			sum.add(n)
		}
		if sum.confirmed == 0 {
			t.Errorf("%s: nothing is confirmed", d)
		}
	}
	onlyCauses(t, gaps(t, dir), "reconnect")
	onlyCauses(t, gaps(t, last.Dir))
	all := gaps(t, restored)
	if len(all) == 0 || all[0].Cause != "recorder_down" || all[0].LastOffsetBefore > r.DurableOffset || all[0].FirstOffsetAfter <= r.DurableOffset {
		t.Errorf("gaps of the restored directory, that held offset %d: %+v", r.DurableOffset, all)
	}
	// What it held is not changed by what came later: both answer alike up to there.
	at := fmt.Sprint("offset:", last.AppliedOffset/2)
	want := lookupLines(t, last.Dir, at, objects)
	for _, d := range []string{dir, restored} {
		for i, line := range lookupLines(t, d, at, objects) {
			if withoutAge(t, line) != withoutAge(t, want[i]) {
				t.Fatalf("%s answers otherwise than the backup about %s:\n%s\n%s", d, at, line, want[i])
			}
		}
	}
}

// How backup and restore fail: what they say, and what they leave.
func TestBackupRefusals(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	tmp := t.TempDir()
	to := filepath.Join(tmp, "b")
	text := kvjournal(t, "backup", "--dir", dir, "--to", to).answered(t)
	if len(text) < 5 || !strings.Contains(text[0], to) {
		t.Errorf("%q", text)
	}
	if err := os.Mkdir(filepath.Join(tmp, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "full", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "--to", []string{"backup", "--dir", dir}},
		{exitUsage, "--from", []string{"restore", "--dir", dir}},
		{exitUsage, "yaml", []string{"backup", "--dir", dir, "--to", to, "--output", "yaml"}},
		{exitFailed, "is there already", []string{"backup", "--dir", dir, "--to", to}},
		{exitFailed, "lie one in the other", []string{"backup", "--dir", dir, "--to", filepath.Join(dir, "b")}},
		{exitFailed, "no such file", []string{"backup", "--dir", dir, "--to", filepath.Join(tmp, "none", "b")}},
		{exitFailed, "no kvjournal data here", []string{"backup", "--dir", filepath.Join(tmp, "none"), "--to", filepath.Join(tmp, "c")}},
		{exitFailed, "not empty", []string{"restore", "--from", to, "--dir", dir}},
		{exitFailed, "not empty", []string{"restore", "--from", to, "--dir", filepath.Join(tmp, "full")}},
		{exitFailed, "this is a backup", []string{"record", "--dir", to, "--endpoint", "tcp://127.0.0.1:1"}},
		{exitFailed, "this is a backup", []string{"rebuild", "--dir", to}},
	} {
		if r := kvjournal(t, c.args...); r.code != c.code || !strings.Contains(r.stderr, c.says) || r.stdout != "" {
			t.Errorf("%q: exit %d, %q %q", c.args, r.code, r.stdout, r.stderr)
		}
	}
	rec := record(t, filepath.Join(tmp, "live"), "tcp://127.0.0.1:1")
	if r := kvjournal(t, "restore", "--from", filepath.Join(tmp, "live"), "--dir", filepath.Join(tmp, "new")); r.code != exitFailed || !strings.Contains(r.stderr, "kvjournal backup") {
		t.Errorf("a live directory is restored from: exit %d, %q", r.code, r.stderr)
	}
	// A recorder that fails to make one says why to whoever asked.
	if r := kvjournal(t, "backup", "--dir", filepath.Join(tmp, "live"), "--to", to); r.code != exitFailed || !strings.Contains(r.stderr, "is there already") {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
	rec.stop(t)
	names, err := os.ReadDir(tmp)
	if err != nil || len(names) != 3 { // b, full, live
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// A recorder that is killed while it backs up, and a client that goes away, leave nothing that looks like a backup; the next one to the
// same place succeeds.
func TestBackupInterrupted(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "data")
	_, endpoint := simulate(t, "--rate", "20000")
	rec := record(t, dir, endpoint)
	eventually(t, "events are recorded", func() bool { return stats(t, dir).Events > 40_000 })
	to := filepath.Join(tmp, "b")
	interrupted := 0
	for i := range 12 {
		p := start(t, kvjournalBinary, "backup", "--dir", dir, "--to", to)
		eventually(t, "the backup begins", func() bool {
			_, err := os.Stat(to + ".partial")
			return err == nil || !p.running()
		})
		time.Sleep(time.Duration(i) * 5 * time.Millisecond) // where in it the end comes
		if i%3 == 0 {
			rec.kill9(t)
			rec = record(t, dir, endpoint)
		} else {
			p.cmd.Process.Signal(os.Interrupt) // it may have ended
		}
		code := p.wait(t)
		_, err := os.Stat(to)
		if whole := err == nil; whole {
			if st := stats(t, to); st.Events == 0 {
				t.Errorf("what is there is no backup: %+v", st)
			}
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			continue
		}
		interrupted++
		if code == 0 {
			t.Error("exit 0, and there is no backup")
		}
		if r := kvjournal(t, "stats", "--dir", to+".partial"); r.code == 0 {
			t.Error("a part of a backup answers questions")
		}
	}
	t.Logf("%d of 12 backups were interrupted", interrupted)
	var r result
	eventually(t, "a recorder that gave a backup up takes another one", func() bool {
		if err := os.RemoveAll(to); err != nil { // one that ended though nobody waited for it any more
			t.Fatal(err)
		}
		r = kvjournal(t, "backup", "--dir", dir, "--to", to, "--output", "json")
		return !strings.Contains(r.stderr, "another backup")
	})
	if reportOf(t, r).Events == 0 {
		t.Error("an empty backup")
	}
	for _, path := range []string{to + ".partial", filepath.Join(dir, "backup.tmp")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s stays", path)
		}
	}
	rec.stop(t)
}
