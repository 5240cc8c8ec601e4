package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// logLines is what log says, as JSON.
func logLines(t *testing.T, dir string, more ...string) []string {
	t.Helper()
	return kvjournal(t, append([]string{"log", "--dir", dir, "--output", "json"}, more...)...).answered(t)
}

// follow starts following a log.
func follow(t *testing.T, dir string, more ...string) *process {
	t.Helper()
	return start(t, kvjournalBinary, append([]string{"log", "--dir", dir, "--output", "json", "--follow"}, more...)...)
}

// endFollow waits until a follower has said as many lines as there are, ends it as Ctrl-C does, and compares.
func (p *process) endFollow(t *testing.T, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing to follow")
	}
	eventually(t, "the follower has "+strconv.Itoa(len(want))+" lines", func() bool {
		return !p.running() || strings.Count(p.out.String(), "\n") >= len(want)
	})
	if p.running() {
		p.signal(t, os.Interrupt.(syscall.Signal))
	}
	if code := p.wait(t); code != 0 {
		t.Fatalf("the follower ended with %d: %s", code, p.talk.String())
	}
	got := strings.Split(strings.TrimSuffix(p.out.String(), "\n"), "\n")
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%q: %d lines, want %d; line %d differs\n got %.300s\nwant %.300s", p.cmd.Args[4:], len(got), len(want), i+1, lineAt(got, i), lineAt(want, i))
			}
		}
	}
}

func lineAt(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return "nothing"
}

// Followers, begun at rest and live, with and without filters, go through recorders that stop, are killed and start again: nothing
// twice, nothing missed.
func TestLogFollow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	small := smallDir(t)
	if err := os.Rename(small, dir); err != nil {
		t.Fatal(err)
	}
	atRest := follow(t, dir)
	eventually(t, "the follower waits for a recorder", func() bool { return strings.Contains(atRest.talk.String(), "waiting for one") })
	fromNow := follow(t, dir, "--from", "now")
	eventually(t, "the follower waits for a recorder", func() bool { return strings.Contains(fromNow.talk.String(), "waiting for one") })
	before := uint64(len(logLines(t, dir, "--raw"))) // messages
	end := stats(t, dir).DurableOffset

	s := newSimulation(t, func(o *mooncaketest.SimOptions) {
		o.Publisher.QueueCapacity, o.Burst = 256, 3000
		o.BurstEvery, o.Duration = 900*1e6, 10*patience
	})
	rec := record(t, dir, s.Endpoint())
	live := follow(t, dir, "--tenant", "tenant-1", "--type", "event,gap")
	fewer := follow(t, dir, "--limit", "7", "--from", "offset:"+strconv.FormatUint(end+1, 10))
	s.run(t)
	eventually(t, "some is recorded", func() bool { return stats(t, dir).Messages > before+200 })
	rec.kill9(t)
	eventually(t, "the follower has seen the recorder end", func() bool { return strings.Count(atRest.talk.String(), "waiting for one") >= 2 })
	rec = record(t, dir, s.Endpoint())
	more := func() {
		t.Helper()
		seen := stats(t, dir).Messages
		eventually(t, "more is recorded", func() bool { return stats(t, dir).Messages > seen+200 })
	}
	more()
	rec.stop(t)
	rec = record(t, dir, s.Endpoint())
	more()
	s.stop()
	s.wait(t)
	quiet(t, dir)
	rec.stop(t)

	atRest.endFollow(t, logLines(t, dir))
	fromNow.endFollow(t, logLines(t, dir, "--from", "offset:"+strconv.FormatUint(end+1, 10)))
	live.endFollow(t, logLines(t, dir, "--tenant", "tenant-1", "--type", "event,gap"))
	fewer.endFollow(t, logLines(t, dir, "--limit", "7", "--from", "offset:"+strconv.FormatUint(end+1, 10)))
}

// The payloads of log --raw, and an export, live and at rest, are exactly what was recorded.
func TestRawAndExportLiveAndAtRest(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	dir := filepath.Join(tmp, "data")
	s := newSimulation(t, unchanged)
	rec := record(t, dir, s.Endpoint())
	s.run(t)
	s.wait(t)
	end := strconv.FormatUint(quiet(t, dir).DurableOffset, 10)
	read := func(how string) (raw, ndjson, plot string, records []capture.Record) {
		raw = kvjournal(t, "log", "--dir", dir, "--raw", "--to", "offset:"+end).stdout
		ndjson = kvjournal(t, "export", "--dir", dir, "--format", "ndjson", "--to", "offset:"+end).stdout
		plot = kvjournal(t, "activity", "--dir", dir, "--to", "offset:"+end).stdout
		path := filepath.Join(tmp, how+".kvcap.zst")
		kvjournal(t, "export", "--dir", dir, "--out", path, "--to", "offset:"+end).answered(t)
		return raw, ndjson, plot, captureOf(t, path)
	}
	raw, ndjson, plot, records := read("live")
	rec.stop(t)
	raw2, ndjson2, plot2, records2 := read("rest")
	if raw == "" || raw != raw2 || ndjson == "" || ndjson != ndjson2 || plot == "" || plot != plot2 {
		t.Errorf("live and at rest differ: raw %d and %d bytes, ndjson %d and %d, activity\n%s\n%s", len(raw), len(raw2), len(ndjson), len(ndjson2), plot, plot2)
	}
	var payloads bytes.Buffer
	for i := range records {
		if r, o := &records[i], &records2[i]; r.Kind != o.Kind || r.Received != o.Received || len(r.Frames) != len(o.Frames) {
			t.Fatalf("record %d: %v live, %v at rest", i, r, o)
		}
		if records[i].Kind == capture.Message {
			payloads.Write(records[i].Frames[2])
		}
	}
	if payloads.String() != raw {
		t.Errorf("the payloads of the export are %d bytes, those of log --raw %d, and not the same", payloads.Len(), len(raw))
	}
	// What is imported from it exports the same again.
	other := filepath.Join(tmp, "other")
	if r := kvjournal(t, "import", "--dir", other, "--source", "copy", filepath.Join(tmp, "live.kvcap.zst")); r.code != 0 {
		t.Fatal(r.stderr)
	}
	again := kvjournal(t, "export", "--dir", other, "--out", "-")
	if err := os.WriteFile(filepath.Join(tmp, "again.kvcap"), []byte(again.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := captureOf(t, filepath.Join(tmp, "again.kvcap")); len(got) != len(records) {
		t.Errorf("%d records came back as %d", len(records), len(got))
	}
}

func captureOf(t *testing.T, path string) (all []capture.Record) {
	t.Helper()
	f, err := capture.Open(vfs.Default, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rec capture.Record
	for f.Next(&rec) == nil {
		own := capture.Record{Kind: rec.Kind, Received: rec.Received}
		for _, frame := range rec.Frames {
			own.Frames = append(own.Frames, bytes.Clone(frame))
		}
		all = append(all, own)
	}
	return all
}

// An export that fails, or is told no, leaves what was there.
func TestExportLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	out := t.TempDir()
	path := filepath.Join(out, "x.kvcap")
	kvjournal(t, "export", "--dir", dir, "--out", path).answered(t)
	whole, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(whole, []byte("KVCAP001")) {
		t.Fatalf("%.20q, %v", whole, err)
	}
	kvjournal(t, "export", "--dir", dir, "--out", path).told(t, 2, "exists", "--force")
	kvjournal(t, "export", "--dir", dir, "--out", path, "--force", "--source", "nobody").told(t, 2, "nobody")
	kvjournal(t, "export", "--dir", dir, "--out", filepath.Join(out, "no", "x.kvcap")).told(t, 1, "--out")
	kvjournal(t, "export", "--dir", dir, "--out", path, "--force", "--from", "offset:2", "--to", "offset:1").told(t, 2, "exchange them")
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(whole, again) {
		t.Errorf("the file changed: %v", err)
	}
	kvjournal(t, "export", "--dir", dir, "--out", path, "--force", "--from", "now").answered(t)
	if again, err := os.ReadFile(path); err != nil || string(again) != "KVCAP001" {
		t.Errorf("an empty span: %.20q, %v", again, err)
	}
	names, err := os.ReadDir(out)
	if err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// Every line of the tables fits 100 columns, and every line of JSON is a value.
func TestLogAndActivityFit(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	for _, command := range []string{"log", "activity"} {
		for _, line := range kvjournal(t, command, "--dir", dir).answered(t) {
			if n := len([]rune(line)); n > 100 {
				t.Errorf("%s: %d columns: %s", command, n, line)
			}
		}
		for _, line := range kvjournal(t, command, "--dir", dir, "--output", "json").answered(t) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: %s", command, line)
			}
		}
	}
	kvjournal(t, "log", "--dir", dir, "--type", "nonsense").told(t, 2, "nonsense", "stored", "fact")
	kvjournal(t, "log", "--dir", dir, "--follow", "--to", "now").told(t, 2, "--to")
	kvjournal(t, "activity", "--dir", dir, "--bucket", "soon").told(t, 2, "soon")
	kvjournal(t, "activity", "--dir", dir, "--type", "gap").told(t, 2, "stored")
	kvjournal(t, "export", "--dir", dir, "--format", "csv").told(t, 2, "csv", "ndjson")
}
