package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
)

// TestMakeFormat makes a fixture: once, when a format is new, or a form of blocks. KVJOURNAL_MAKE_FORMAT is its name.
func TestMakeFormat(t *testing.T) {
	name := os.Getenv("KVJOURNAL_MAKE_FORMAT")
	if name == "" {
		t.Skip("KVJOURNAL_MAKE_FORMAT is not set")
	}
	to := fixtureDir(name)
	if _, err := os.Stat(filepath.Join(to, fixtureData)); err == nil {
		t.Fatalf("%s is there already; a fixture is never made again", to)
	}
	dir := filepath.Join(t.TempDir(), "data")
	var questions []fixtureAnswer
	switch name {
	case fixtureOf(datadir.FormatWhole):
		liveLives(t, dir)
		kvjournal(t, "import", "--dir", dir, "--source", "odd", oddCapture(t)).answered(t)
		questions = fixtureQuestions(t, dir, "first", "silent", "lossy", "odd")
	case fixtureOf(datadir.FormatPruned):
		dir = prunedLife(t)
		questions = prunedQuestions(t, dir)
	case fixtureStarts:
		kvjournal(t, "import", "--dir", dir, "--source", "grouped", groupedCapture(t)).answered(t)
		kvjournal(t, "import", "--dir", dir, "--source", "odd", oddCapture(t)).answered(t)
		questions = fixtureQuestions(t, dir, "grouped", "odd")
	default:
		t.Fatalf("no fixture is named %q", name)
	}
	data := archive(t, dir)

	var answers bytes.Buffer
	z, err := gzip.NewWriterLevel(&answers, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	out := json.NewEncoder(z)
	for _, a := range questions {
		lines := askFixture(t, dir, &a)
		if slices.Contains(a.Args, "--raw") {
			a.SHA256, lines = hashOf(lines), nil
		}
		for _, line := range lines {
			a.Lines = append(a.Lines, json.RawMessage(line))
		}
		if err := out.Encode(&a); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{fixtureData: data, fixtureAnswers: answers.Bytes()} {
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", name, len(b))
	}
}

// liveLives fills a directory with what recorders write: three masters, one of which is silent and one of which loses its tails, restarts, losses in the queue, readings, a
// recorder that was killed and lost its tail.
func liveLives(t *testing.T, dir string) {
	t.Helper()
	simOf := func(seed uint64, change func(*mooncaketest.SimOptions)) *simulation {
		return newSimulation(t, func(o *mooncaketest.SimOptions) {
			o.Truth, o.Rate, o.Duration = nil, 30, 10*patience
			o.Store = mooncaketest.StoreOptions{Seed: seed, Tenants: 2, Objects: 25, ClearEvery: 120, OddKeys: 6, PendingPuts: 1}
			o.Publisher.QueueCapacity, o.Burst, o.BurstEvery = 16, 60, 2*time.Second
			o.Publisher.OnTaken = func(int) { time.Sleep(3 * time.Millisecond) }
			change(o)
		})
	}
	first := simOf(1, func(o *mooncaketest.SimOptions) { o.RestartEvery = 5 * time.Second })
	calm := func(o *mooncaketest.SimOptions) { o.Publisher.QueueCapacity, o.Publisher.OnTaken, o.Burst = 0, nil, 0 }
	silent := simOf(2, func(o *mooncaketest.SimOptions) {
		calm(o)
		o.Rate, o.SilentRemovals, o.Store.Tenants, o.Store.Objects, o.Store.ClearEvery, o.Store.OddKeys = 100, 10, 1, 100, 0, 0
	})
	lossy := simOf(3, func(o *mooncaketest.SimOptions) {
		calm(o)
		o.TailLoss, o.QuietEvery, o.QuietFor, o.SegmentLossEvery = 1, 5*time.Second, 4*time.Second, 11*time.Second
	})
	args := []string{"record", "--dir", dir, "--audit-every", "1s",
		"--source", "name=first,endpoint=" + first.Endpoint() + ",master=" + first.withAdmin(t),
		"--source", "name=silent,endpoint=" + silent.Endpoint() + ",master=" + silent.withAdmin(t),
		"--source", "name=lossy,endpoint=" + lossy.Endpoint() + ",master=" + lossy.withAdmin(t)}
	life := func() *process {
		p := start(t, kvjournalBinary, args...)
		p.answers(t, dir)
		return p
	}
	events := func(more uint64) {
		before := stats(t, dir).Events
		eventually(t, "events", func() bool { return stats(t, dir).Events >= before+more })
	}
	rec := life()
	sims := []*simulation{first, silent, lossy}
	for _, s := range sims {
		s.run(t)
	}
	events(300)
	rec.stop(t)
	rec = life()
	events(50)
	time.Sleep(1500 * time.Millisecond) // the head file tells of it
	rec.kill9(t)
	logs, err := filepath.Glob(filepath.Join(dir, "journal", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, l := range logs { // a disk that loses what was acknowledged
		if err := os.Remove(l); err != nil {
			t.Fatal(err)
		}
	}
	rec = life()
	eventually(t, "all kinds of records", func() bool {
		lines := strings.Join(kvjournal(t, "log", "--dir", dir, "--output", "json").answered(t), "\n")
		causes := count(gaps(t, dir))
		for _, kind := range []string{"connected", "disconnected", "recorder_started", "recorder_stopped", "tail_lost", "publisher_status", "reconciliation_begun", "reconciliation_ended"} {
			if !strings.Contains(lines, `"type":"`+kind+`"`) {
				t.Logf("no %s yet", kind)
				return false
			}
		}
		return causes["tail_loss"] > 0 && causes["publisher_restart"] > 0 && causes["publisher_queue"] > 0 &&
			strings.Contains(strings.Join(kvjournal(t, "objects", "--dir", dir, "--source", "silent", "--state", "any", "--output", "json").answered(t), ""), `"silent":true`)
	})
	rec.stop(t)
	for _, s := range sims {
		s.stop()
		s.wait(t)
	}
}

// oddCapture has what publishers rarely send: damage of several kinds, a duplicate, other media, keys of any bytes, a clock that goes back.
func oddCapture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "odd.kvcap")
	c := newCapture(t, path)
	c.batch(stored("k", "cpu"), stored(binaryKey, "disk"), stored("\x00\x01", "nvme"), stored("both", "gpu é"))
	c.batch(stored("k", "disk"), removed("k", "cpu"), event.Fields{Type: event.Stored, Tenant: "t\x00", Backend: "", Medium: "cpu", Key: "k"})
	c.seq++ // dropped by the publisher's queue
	c.batch(stored("shadow", "cpu"))
	c.batch(stored("k", "cpu"))
	raw := func(frames ...[]byte) {
		c.write(capture.Record{Kind: capture.Message, Received: timeOf(c.seq).UnixNano() + 5, Frames: frames})
	}
	raw([]byte("one frame"))
	c.seq++
	seq := event.SeqFrame(c.seq)
	raw([]byte{}, seq[:], []byte{0xc1})
	raw([]byte{}, seq[:], []byte{0xc1}) // a duplicate
	c.batch(event.Fields{Type: event.Cleared, Tenant: "default", Backend: "b0"})
	c.batch(stored("after the clear", "cpu"))
	var full []event.Fields
	for i := range 64 {
		full = append(full, stored(fmt.Sprint("full ", i), "cpu"))
	}
	c.batch(full...)
	c.seq -= 4 // another process
	c.batch(stored("k", "cpu"))
	c.write(capture.Record{Kind: capture.Disconnected, Received: timeOf(c.seq).UnixNano() + 10})
	c.write(capture.Record{Kind: capture.Connected, Received: timeOf(c.seq).UnixNano() + 20})
	c.batch(removed("k", "cpu"), stored("last", "disk"))
	c.close()
	return path
}

// groupedCapture has keys that start with their group_id, or nearly, as those of engines do that store one object a layer, in batches of one
// event and of many, with a loss between.
func groupedCapture(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "grouped.kvcap")
	c := newCapture(t, path)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 300 {
		start := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		group := "g:" + start
		n := 1
		if i%3 == 0 {
			n = 1 + rng.IntN(64)
		}
		var events []event.Fields
		for k := range n {
			e := stored(fmt.Sprintf("%s_%d", start, k), "cpu")
			switch rng.IntN(20) {
			case 0:
				e.Key = start // all of it
			case 1:
				e.Key = "other_" + e.Key
			case 2:
				e.Type, e.Medium = event.Removed, "disk"
			}
			e.GroupID = &group
			events = append(events, e)
		}
		c.batch(events...)
		if i == 150 {
			c.seq += 3 // dropped by the publisher's queue
		}
	}
	c.close()
	return path
}

// fixtureQuestions are what is asked of a fixture.
func fixtureQuestions(t *testing.T, dir string, sources ...string) []fixtureAnswer {
	t.Helper()
	last := stats(t, dir).DurableOffset
	var offsets []uint64 // that are there: a tail was lost
	for _, text := range kvjournal(t, "log", "--dir", dir, "--output", "json").answered(t) {
		var l struct {
			Offset uint64 `json:"offset"`
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, l.Offset)
	}
	part := func(k, n int) string { return fmt.Sprint("offset:", offsets[k*len(offsets)/n]) }
	out := []fixtureAnswer{{Args: []string{"stats"}}, {Args: []string{"gaps"}}, {Args: []string{"log"}}, {Args: []string{"log", "--raw", "--to", fmt.Sprint("offset:", last)}, Past: true}}
	for i, source := range sources {
		some := []object{{"default", "never-seen"}}
		for n, line := range kvjournal(t, "objects", "--dir", dir, "--source", source, "--state", "any", "--output", "json").answered(t) {
			var name query.Question
			if err := json.Unmarshal([]byte(line), &name); err != nil {
				t.Fatal(err)
			}
			if n%12 == 0 || source == "odd" {
				some = append(some, object{string(name.Tenant), string(name.Key)})
			}
		}
		out = append(out, fixtureAnswer{Args: []string{"objects", "--source", source, "--state", "any"}, Past: true},
			fixtureAnswer{Args: []string{"lifetimes", "--source", source}}, fixtureAnswer{Args: []string{"gaps", "--source", source}, Past: true},
			fixtureAnswer{Args: []string{"lookup", "--stdin"}, Stdin: sourced(t, source, some), Past: true},
			fixtureAnswer{Args: []string{"activity", "--source", source, "--bucket", "10s"}})
		for k := range 3 {
			at := part(k+1, 4)
			out = append(out, fixtureAnswer{Args: []string{"lookup", "--stdin", "--at", at}, Stdin: sourced(t, source, some), Past: true})
		}
		for k := i; k < len(some); k += 17 {
			if both := some[k].tenant + some[k].key; utf8.ValidString(both) && !strings.Contains(both, "\x00") { // what an argument, and JSON, can hold
				out = append(out, fixtureAnswer{Args: []string{"history", "--source", source, "--tenant", some[k].tenant, "--", some[k].key}, Past: true})
			}
		}
		out = append(out, fixtureAnswer{Args: []string{"diff", "--source", source, "--from", part(1, 3), "--to", part(1, 2)}, Past: true})
	}
	return out
}

// prunedLife is a directory that was pruned twice, the second time in the middle of what publishers rarely send.
func prunedLife(t *testing.T) string {
	t.Helper()
	dir, _ := agedDir(t, "aged")
	end := stats(t, dir).DurableOffset
	kvjournal(t, "import", "--dir", dir, "--source", "odd", oddCapture(t)).answered(t)
	pruneReport(t, dir, "--before", fmt.Sprint("offset:", end/2))
	pruneReport(t, dir, "--before", fmt.Sprint("offset:", end-end/8))
	return dir
}

func prunedQuestions(t *testing.T, dir string) (out []fixtureAnswer) {
	t.Helper()
	st := stats(t, dir)
	some := []object{{"default", "never-seen"}}
	for i := range 40 {
		some = append(some, object{"default", fmt.Sprint("k", 7*i)})
	}
	horizon, last := fmt.Sprint("offset:", st.Horizon.Offset), fmt.Sprint("offset:", st.DurableOffset)
	middle := fmt.Sprint("offset:", (st.Horizon.Offset+st.DurableOffset)/2)
	out = []fixtureAnswer{{Args: []string{"stats"}}, {Args: []string{"gaps"}}, {Args: []string{"log", "--raw", "--from", middle, "--to", last}, Past: true}}
	for _, source := range []string{"aged", "odd"} {
		out = append(out, fixtureAnswer{Args: []string{"objects", "--source", source, "--state", "any"}, Past: true}, fixtureAnswer{Args: []string{"lifetimes", "--source", source}},
			fixtureAnswer{Args: []string{"gaps", "--source", source}, Past: true}, fixtureAnswer{Args: []string{"activity", "--source", source, "--bucket", "1m"}},
			fixtureAnswer{Args: []string{"lookup", "--stdin"}, Stdin: sourced(t, source, some), Past: true})
	}
	for _, at := range []string{horizon, middle, last} {
		out = append(out, fixtureAnswer{Args: []string{"lookup", "--stdin", "--at", at}, Stdin: sourced(t, "aged", some), Past: true})
	}
	return append(out, fixtureAnswer{Args: []string{"history", "--source", "aged", "--", "k7"}, Past: true},
		fixtureAnswer{Args: []string{"diff", "--source", "aged", "--from", horizon, "--to", middle}, Past: true})
}

// archive is a data directory as a .tar.gz, without locks and sockets.
func archive(t *testing.T, dir string) []byte {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !slices.Contains([]string{"claim", "access", "live.json", "LOCK"}, d.Name()) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
