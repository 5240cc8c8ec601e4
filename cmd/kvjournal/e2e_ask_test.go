package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// object names one by its tenant and key; they may be any bytes.
type object struct{ tenant, key string }

// questions are the lines of `lookup --stdin` for objects.
func questions(t *testing.T, objects []object) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		line, err := json.Marshal(&query.Question{Name: query.Name{Tenant: query.Bytes(o.tenant), Key: query.Bytes(o.key)}})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// lookupLines asks for all objects at once and returns the answers' JSON.
func lookupLines(t *testing.T, dir, at string, objects []object) []string {
	t.Helper()
	args := []string{"lookup", "--stdin", "--dir", dir, "--output", "json"}
	if at != "" {
		args = append(args, "--at", at)
	}
	lines := kvjournalStdin(t, questions(t, objects), args...).answered(t)
	if len(lines) != len(objects) {
		t.Fatalf("%d answers to %d questions", len(lines), len(objects))
	}
	return lines
}

// lookup asks for all objects at once and checks that the answers stand in the order of the questions.
func lookup(t *testing.T, dir, at string, objects []object) []query.Answer {
	t.Helper()
	lines := lookupLines(t, dir, at, objects)
	out := make([]query.Answer, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &out[i]); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if string(out[i].Key) != objects[i].key || string(out[i].Tenant) != objects[i].tenant {
			t.Fatalf("answer %d is about another object than question %d: %s", i, i, line)
		}
	}
	return out
}

func tryStats(t *testing.T, dir string) (*query.StatsOut, bool) {
	t.Helper()
	r := kvjournal(t, "stats", "--dir", dir, "--output", "json")
	if r.code != 0 {
		return nil, false
	}
	var st query.StatsOut
	if err := json.Unmarshal([]byte(r.stdout), &st); err != nil {
		t.Fatalf("%v: stats printed %q", err, r.stdout)
	}
	return &st, true
}

func stats(t *testing.T, dir string) *query.StatsOut {
	t.Helper()
	st, ok := tryStats(t, dir)
	if !ok {
		t.Fatalf("no stats of %s", dir)
	}
	return st
}

func gapLines(t *testing.T, dir string) []string {
	t.Helper()
	return kvjournal(t, "gaps", "--dir", dir, "--output", "json").answered(t)
}

func gaps(t *testing.T, dir string) []query.GapOut {
	t.Helper()
	lines := gapLines(t, dir)
	out := make([]query.GapOut, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &out[i]); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	return out
}

// onlyCauses fails the test if a gap has another cause, and returns how many there are of each.
func onlyCauses(t *testing.T, all []query.GapOut, allowed ...string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for i := range all {
		count[all[i].Cause]++
		ok := false
		for _, a := range allowed {
			ok = ok || a == all[i].Cause
		}
		if !ok {
			line, _ := json.Marshal(all[i])
			t.Errorf("a gap that did not happen: %s", line)
		}
	}
	return count
}

// received is how many messages a recorder got in its life, durable or not.
func received(st *query.StatsOut) (n uint64) {
	if st.Recorder != nil {
		for i := range st.Recorder.Sockets {
			n += st.Recorder.Sockets[i].Messages
		}
	}
	return n
}

// quiet waits until the recorder has taken all that was sent: its buffer and the index's lag are empty, and nothing
// comes any more: for a while, and for as many answers as a recorder that is held up does not give in it. What it received, and holds while
// the disk is slow, is known only of the first life of a directory: the others are watched longer.
func quiet(t *testing.T, dir string) *query.StatsOut {
	t.Helper()
	var last *query.StatsOut
	var since time.Time
	same := 0
	eventually(t, "the recorder has all", func() bool {
		st := stats(t, dir)
		if last == nil || st.DurableOffset != last.DurableOffset || received(st) != received(last) || st.Index.Lag > 0 || st.Recorder != nil && st.Recorder.BufferBytes > 0 {
			last, since, same = st, time.Now(), 0
			return false
		}
		enough := 10
		if st.Recorder != nil && received(st) != st.Messages {
			enough = 30
		}
		same++
		return same >= enough && time.Since(since) > 400*time.Millisecond
	})
	return last
}

// connected waits until the recorder of the one source is, or is not.
func connected(t *testing.T, dir string, want bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("connected: %v", want), func() bool {
		st := stats(t, dir)
		return len(st.Sources) == 1 && st.Sources[0].Connected == want
	})
}

// timeless is an answer's JSON without what depends on when and whom one asks.
func timeless(t *testing.T, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if asOf, ok := m["as_of"].(map[string]any); ok {
		delete(asOf, "live")
		delete(asOf, "age_ms")
	}
	return m
}

// short is an answer's line up to as_of's age, which is followed by as_of.live only.
func short(line string) string {
	for _, name := range []string{`"age_ms":`, `"live":`} {
		if i := strings.LastIndex(line, name); i >= 0 {
			return line[:i]
		}
	}
	return line
}

// sameAnswers fails the test where two runs of the same questions differ in more than as_of.live and age_ms.
func sameAnswers(t *testing.T, what string, a, b []string) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%s: %d and %d answers", what, len(a), len(b))
	}
	for i := range a {
		if short(a[i]) == short(b[i]) {
			continue
		}
		if !reflect.DeepEqual(timeless(t, a[i]), timeless(t, b[i])) {
			t.Fatalf("%s: answer %d\n%s\n%s", what, i+1, a[i], b[i])
		}
	}
}
