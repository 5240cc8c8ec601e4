package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/kvjournal/kvjournal/journal/event"
)

// TestKeysOfAMegabyte: keys, tenants and backends of 1 MB are recorded, answered about by every command, exported and imported, live and at
// rest; and what is for people stays readable.
func TestKeysOfAMegabyte(t *testing.T) {
	t.Parallel()
	dir, files := filepath.Join(t.TempDir(), "data"), t.TempDir()
	p := newWire(t, 1000).bind("")
	rec := p.record(dir)
	keys := []string{strings.Repeat("k", 1<<20), strings.Repeat("\xff\x00é", 1<<18), strings.Repeat("長い", 150_000)}
	tenant := strings.Repeat("t", 1<<20)
	send := func(typ event.Type, key, tenant string) {
		p.seq++
		p.id++
		now := time.Now().UnixMilli()
		seq := event.SeqFrame(p.seq)
		p.raw(nil, seq[:], p.encoder.AppendPayload(nil, now, []event.Fields{{Type: typ, ID: p.id, Timestamp: now, Tenant: tenant, Backend: "b", Medium: "cpu", Key: key}}, 0))
	}
	for _, typ := range []event.Type{event.Stored, event.Removed, event.Stored} {
		for _, key := range keys {
			send(typ, key, event.DefaultTenant)
		}
	}
	send(event.Stored, "k", tenant)
	p.seq, p.id = p.seq+5, p.id+5 // a gap
	send(event.Stored, "after", event.DefaultTenant)
	eventually(t, "all is indexed", func() bool {
		st, ok := tryStats(t, dir)
		return ok && st.Messages == 11 && st.Index.Lag == 0
	})
	asked := func(when string) {
		t.Helper()
		for i, key := range keys {
			file := filepath.Join(files, fmt.Sprint("key", i))
			if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
				t.Fatal(err)
			}
			question := fmt.Sprintf(`{"object_key_base64":%q}`, base64.StdEncoding.EncodeToString([]byte(key)))
			answer := kvjournalStdin(t, question, "lookup", "--dir", dir, "--stdin", "--output", "json").answered(t)
			if len(answer) != 1 || !strings.Contains(answer[0], `"present":true`) {
				t.Errorf("%s: lookup of key %d: %.300q", when, i, answer)
			}
			readable(t, kvjournalStdin(t, question, "lookup", "--dir", dir, "--stdin").answered(t))
			history := kvjournal(t, "history", "--dir", dir, "--key-file", file, "--output", "json").answered(t)
			events := 0
			for _, line := range history {
				var l struct {
					Kind string `json:"kind"`
					Key  []byte `json:"object_key_base64"`
				}
				if err := json.Unmarshal([]byte(line), &l); err != nil || string(l.Key) != key {
					t.Fatalf("%s: history of key %d: %v, %.200q", when, i, err, line)
				}
				if l.Kind != "mark" {
					events++
				}
			}
			if events != 3 {
				t.Errorf("%s: history of key %d has %d events, want 3", when, i, events)
			}
			readable(t, kvjournal(t, "history", "--dir", dir, "--key-file", file).answered(t))
			why := kvjournalStdin(t, key, "why", "--dir", dir, "--key-file", "-").answered(t)
			readable(t, why)
			if !strings.Contains(strings.Join(why, " "), "present") {
				t.Errorf("%s: why of key %d: %q", when, i, why)
			}
		}
		if lines := kvjournal(t, "objects", "--dir", dir, "--output", "json").answered(t); len(lines) != 5 {
			t.Errorf("%s: %d objects, want 5", when, len(lines))
		}
		for _, args := range [][]string{{"objects"}, {"diff", "--from", "offset:2", "--to", "offset:10"}, {"gaps"}, {"log"}, {"activity"}, {"lifetimes"}, {"lifetimes", "--by", "tenant"}, {"stats"}} {
			readable(t, kvjournal(t, append(args, "--dir", dir)...).answered(t))
		}
	}
	asked("live")
	objects := kvjournal(t, "objects", "--dir", dir, "--output", "json").stdout
	rec.stop(t)
	asked("at rest")
	kvjournal(t, "rebuild", "--dir", dir).answered(t)
	if again := kvjournal(t, "objects", "--dir", dir, "--output", "json").stdout; presence(t, again) != presence(t, objects) {
		t.Error("other objects after a rebuild")
	}
	capture, copied := filepath.Join(files, "x.kvcap.zst"), filepath.Join(t.TempDir(), "copy")
	kvjournal(t, "export", "--dir", dir, "--out", capture).answered(t)
	kvjournal(t, "import", "--dir", copied, "--source", "default", capture).answered(t)
	if got, want := presence(t, kvjournal(t, "objects", "--dir", copied, "--output", "json").stdout), presence(t, objects); got != want {
		t.Errorf("the copy has other objects: %d bytes, want %d", len(got), len(want))
	}
}

// presence is who is present in lines of objects.
func presence(t *testing.T, lines string) string {
	t.Helper()
	var out bytes.Buffer
	for line := range strings.Lines(lines) {
		var l struct {
			Tenant  []byte `json:"tenant_id_base64"`
			Key     []byte `json:"object_key_base64"`
			Present bool   `json:"present"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%q %q %v\n", l.Tenant, l.Key, l.Present)
	}
	return out.String()
}

// readable checks that what is for people fits a terminal. Commands to be copied may be longer, but not by megabytes.
func readable(t *testing.T, lines []string) {
	t.Helper()
	for _, line := range lines {
		most := tableWidth
		if strings.Contains(line, "kvjournal ") {
			most = 4096
		}
		if !utf8.ValidString(line) || columns(line) > most {
			t.Errorf("a line of %d bytes: %.300q", len(line), line)
		}
	}
}
