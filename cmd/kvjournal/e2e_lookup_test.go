package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query"
)

// oneCompactValue fails the test unless each line is one compact JSON object.
func oneCompactValue(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(line)); err != nil || b.String() != line || !strings.HasPrefix(line, "{") {
			t.Errorf("%v: no compact JSON object: %s", err, line)
		}
		if strings.Contains(line, ":null") {
			t.Errorf("an unknown value is null, and not left out: %s", line)
		}
	}
}

func TestLookupStdin(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	k64 := base64.StdEncoding.EncodeToString([]byte(binaryKey))
	ask := []string{
		`{"object_key":"k"}`,
		`{"object_key_base64":"` + k64 + `"}`,
		`{"object_key":"never-seen","tenant_id":"never-seen","backend_id":"never-seen"}`,
		``,
		`{"tenant_id":"default","backend_id":"b0","object_key":"both"}`,
		`{"object_key":"k","surplus":[1,2]}`,
		`{"tenant_id_base64":"ZGVmYXVsdA==","backend_id_base64":"YjA=","object_key_base64":"aw=="}`,
		`  {"object_key":"<&>\u2028"}  `,
	}
	r := kvjournalStdin(t, strings.Join(ask, "\n"), "lookup", "--stdin", "--dir", dir, "--output", "json")
	lines := r.answered(t)
	if r.stderr != "" {
		t.Errorf("talk: %q", r.stderr)
	}
	oneCompactValue(t, lines)
	wantKeys := []string{"k", binaryKey, "never-seen", "both", "k", "k", "<&>\u2028"}
	if len(lines) != len(wantKeys) {
		t.Fatalf("%d answers: %q", len(lines), lines)
	}
	for i, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["object_key_base64"] != base64.StdEncoding.EncodeToString([]byte(wantKeys[i])) {
			t.Errorf("answer %d is about another key than %q: %s", i, wantKeys[i], line)
		}
		if text, ok := m["object_key"]; ok != (i != 1) || ok && text != wantKeys[i] {
			t.Errorf("object_key %q of %q", text, wantKeys[i])
		}
		if m["source"] != "small" || m["tenant_id_base64"] == nil || m["present"] == nil || m["certainty"] == nil {
			t.Errorf("answer %s", line)
		}
	}
	if lines[0] == "" || fmt.Sprint(timeless(t, lines[0])) != fmt.Sprint(timeless(t, lines[4])) || fmt.Sprint(timeless(t, lines[0])) != fmt.Sprint(timeless(t, lines[5])) {
		t.Errorf("the same object, asked for in three ways:\n%s\n%s\n%s", lines[0], lines[4], lines[5])
	}
	if !strings.Contains(lines[2], `"backend_id":"never-seen"`) || strings.Contains(lines[2], `"confirmed"`) || strings.Contains(lines[2], `"present":true`) {
		t.Errorf("an object never seen: %s", lines[2])
	}
	if out := kvjournalStdin(t, "", "lookup", "--stdin", "--dir", dir, "--output", "json"); out.code != 0 || out.stdout != "" {
		t.Errorf("no questions: exit %d, %q", out.code, out.stdout)
	}
}

// More questions than one chunk holds keep their order, and the last line needs no newline.
func TestLookupStdinManyLines(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	objects := make([]object, 2*lookupChunk+17)
	for i := range objects {
		objects[i] = object{"default", "k" + strconv.Itoa(i)}
	}
	objects[lookupChunk].key, objects[2*lookupChunk].key = "both", binaryKey
	answers := lookup(t, dir, "", objects)
	for _, i := range []int{lookupChunk, 2 * lookupChunk} {
		if !answers[i].Present {
			t.Errorf("answer %d: %+v", i, answers[i])
		}
	}
}

func TestLookupAt(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	ms := func(seq uint64) string { return strconv.FormatInt(timeOf(seq).UnixMilli(), 10) }
	rfc := func(seq uint64, zone string) string { return timeOf(seq).Format("2006-01-02T15:04:05.000") + zone }
	for _, c := range []struct {
		at, key   string
		cpu, disk string // state and certainty: P or A, c or u
		offset    uint64
	}{
		{"", "k", "Pc", "Pu", 5}, // its event on disk is older than the gap
		{"offset:5", "k", "Pc", "Pu", 5},
		{"offset:2", "k", "Pc", "Au", 2},
		{"offset:3", "k", "Ac", "Pc", 3},
		{"offset:4", "k", "Au", "Pu", 4},
		{"offset:1", "k", "Au", "Au", 1},
		{"offset:4", "shadow", "Pu", "Au", 4}, // R4
		{"seq:1/1", "k", "Pc", "Au", 2},
		{"seq:1/2", "k", "Ac", "Pc", 3},
		{"seq:1/5", "k", "Pc", "Pu", 5},
		{ms(1), "k", "Pc", "Au", 2},
		{ms(1), "both", "Pc", "Pc", 2},
		{ms(2), "k", "Au", "Pu", 3}, // the next batch does not follow
		{ms(0), "k", "Au", "Au", 0},
		{ms(5), "k", "Pu", "Pu", 5}, // behind the last batch
		{rfc(1, "Z"), "k", "Pc", "Au", 2},
		{rfc(1, "+00:00"), "k", "Pc", "Au", 2},
		{"-1ms", "k", "Pu", "Pu", 5},
		{"now", "k", "Pu", "Pu", 5},
		{ms(1), binaryKey, "Au", "Pc", 2},
	} {
		a := lookup(t, dir, c.at, []object{{"default", c.key}})[0]
		short := func(m query.MediumOut) string { return strings.ToUpper(m.State[:1]) + m.Certainty[:1] }
		if cpu, disk := short(a.Media["cpu"]), short(a.Media["disk"]); cpu != c.cpu || disk != c.disk || a.AsOf.Offset != c.offset {
			t.Errorf("%q at %q: cpu %s, disk %s, as of %d; want %s, %s, %d", c.key, c.at, cpu, disk, a.AsOf.Offset, c.cpu, c.disk, c.offset)
		}
		if a.AsOf.Live {
			t.Errorf("%q: live, at rest", c.at)
		}
	}
}

// What the contract's example shows, field by field.
func TestLookupShape(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	r := kvjournal(t, "lookup", "k", "--dir", dir, "--output", "json", "--at", "offset:4")
	lines := r.answered(t)
	oneCompactValue(t, lines)
	got := fmt.Sprint(timeless(t, lines[0]))
	want := fmt.Sprint(timeless(t, `{"source":"small","backend_id":"b0","backend_id_base64":"YjA=","tenant_id":"default","tenant_id_base64":"ZGVmYXVsdA==",
		"object_key":"k","object_key_base64":"aw==","present":true,"certainty":"uncertain",
		"media":{"cpu":{"state":"absent","certainty":"uncertain","evidence":{"offset":3,"epoch":1,"seq":2,"event_id":6,"time":"2026-11-29T12:03:02.000Z","received":"2026-11-29T12:03:02.000Z","cause":"event"},
		                "doubt":{"cause":"publisher_queue","offset":4,"time":"2026-11-29T12:03:04.000Z"}},
		         "disk":{"state":"present","certainty":"uncertain","evidence":{"offset":3,"epoch":1,"seq":2,"event_id":5,"time":"2026-11-29T12:03:02.000Z","received":"2026-11-29T12:03:02.000Z","cause":"event"},
		                "doubt":{"cause":"publisher_queue","offset":4,"time":"2026-11-29T12:03:04.000Z"}}},
		"as_of":{"offset":4,"time":"2026-11-29T12:03:04.000Z","received":"2026-11-29T12:03:04.000Z"}}`))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	lines = gapLines(t, dir)
	oneCompactValue(t, lines)
	wantGap := timeless(t, `{"source":"small","epoch":1,"cause":"publisher_queue","first_missing_seq":3,"last_missing_seq":3,"missing_seqs":1,"lost_events":1,
		"last_offset_before":3,"first_offset_after":4,"time_before":"2026-11-29T12:03:02.000Z","time_after":"2026-11-29T12:03:04.000Z","received":"2026-11-29T12:03:04.000Z",
		"in_doubt":{"objects":3,"already_in_doubt":0,"scopes":[{"backend_id":"b0","backend_id_base64":"YjA=","tenant_id":"default","tenant_id_base64":"ZGVmYXVsdA==","objects":3}],"scopes_total":1}}`)
	if len(lines) != 1 || fmt.Sprint(timeless(t, lines[0])) != fmt.Sprint(wantGap) {
		t.Errorf("gaps %q", lines)
	}

	lines = kvjournal(t, "stats", "--dir", dir, "--output", "json").answered(t)
	oneCompactValue(t, lines)
	st := stats(t, dir)
	if len(lines) != 1 || st.Events != 8 || st.Messages != 4 || st.DurableOffset != 5 || st.Index.AppliedOffset != 5 || st.Index.Lag != 0 ||
		st.ObjectsLive != 4 || len(st.Sources) != 1 || st.Sources[0].Seq != 5 || st.Sources[0].Epoch != 1 || *st.Sources[0].EventID != 8 ||
		st.Sources[0].Connected || st.Journal.Bytes == 0 || st.Index.Bytes == 0 {
		t.Errorf("stats %q", lines)
	}
}

// Tables are for people: every answer in them, and nothing on stderr.
func TestTables(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"lookup k both", []string{"OBJECT", "k ", "both", "cpu", "disk", "present", "confirmed", "uncertain", "publisher_queue", "as of offset 5"}},
		{"lookup never --at offset:2", []string{"absent", "doubt: no_evidence"}},
		{"gaps", []string{"CAUSE", "small", "publisher_queue", "1/3 ", "3 of 3", "make its event queue larger"}},
		{"gaps --no-objects", []string{"publisher_queue", "not counted"}},
		{"gaps --to offset:3", []string{"No loss was seen."}},
		{"gaps --summary", []string{"2026-11-29 12:00", "publisher_queue", "LOSSES"}},
		{"lifetimes", []string{"cpu, default", "1 ended: copy left 1", "3 open", "stored again  1", "max 1 s", "█"}},
		{"lifetimes --by group --medium disk", []string{"disk, no group", "0 ended", "3 open"}},
		{"stats", []string{"events", "durable offset", "small"}},
	} {
		r := kvjournal(t, append(strings.Fields(c.args), "--dir", dir)...)
		r.answered(t)
		for _, w := range c.want {
			if !strings.Contains(r.stdout, w) {
				t.Errorf("%s does not show %q:\n%s", c.args, w, r.stdout)
			}
		}
		if r.stderr != "" {
			t.Errorf("%s talks: %q", c.args, r.stderr)
		}
	}
}
