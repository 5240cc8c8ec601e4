package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

// newFullSource serves batches of one to five events, with a gap before every tenth, an empty and a damaged one.
func newFullSource(t *testing.T) *source {
	t.Helper()
	fs := vfs.NewMem()
	c, err := capture.Create(fs, "full.kvcap")
	if err != nil {
		t.Fatal(err)
	}
	enc := event.NewEncoder(event.EncodeOptions{ObjectKey: true})
	begun := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	write := func(rec capture.Record) {
		t.Helper()
		if err := c.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	write(capture.Record{Kind: capture.Connected, Received: begun.UnixNano()})
	id, seq := uint64(0), uint64(0)
	for i := range 60 {
		if seq++; i%10 == 9 {
			seq += 3
		}
		at := begun.Add(time.Duration(i) * time.Second)
		var fields []event.Fields
		for k := range i % 6 { // none at all of every sixth
			id++
			fields = append(fields, event.Fields{Type: event.Stored, ID: id, Timestamp: at.UnixMilli(), Tenant: []string{"default", "other"}[k%2], Backend: "b", Medium: "cpu", Key: fmt.Sprintf("k%d", id%17)})
		}
		frame, payload := event.SeqFrame(seq), enc.AppendPayload(nil, at.UnixMilli(), fields, 0)
		if i == 33 {
			payload = payload[:len(payload)-1]
		}
		write(capture.Record{Kind: capture.Message, Received: at.UnixNano(), Frames: [][]byte{{}, frame[:], payload}})
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := service.OpenForWriting(t.Context(), "data", "test", service.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if _, err := w.Import(t.Context(), "s", "full.kvcap", recorder.ImportOptions{FS: fs}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := begun.Add(time.Hour) // ages are the same whenever it is asked
	return &source{engine: &query.Engine{Journal: w.Journal, Index: w.Index, Now: func() time.Time { return now }}}
}

// told is one server-sent event.
type told struct{ id, data string }

// askEvents asks for the events of a span, and reads them.
func askEvents(t *testing.T, s *source, params, last string) []told {
	t.Helper()
	r := httptest.NewRequest("GET", "/v1/log?follow=false&"+params, nil)
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	w := httptest.NewRecorder()
	httpapi.Handler(s).ServeHTTP(w, r)
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %s %s", w.Code, w.Header(), w.Body)
	}
	var out []told
	for block := range strings.SplitSeq(w.Body.String(), "\n\n") {
		var e told
		for line := range strings.SplitSeq(block, "\n") {
			switch field, value, _ := strings.Cut(line, ": "); field {
			case "id":
				e.id = value
			case "data":
				e.data = value
			}
		}
		if e != (told{}) {
			out = append(out, e)
		}
	}
	return out
}

// lines are those of log as a listing.
func lines(t *testing.T, s *source, params string) []string {
	t.Helper()
	w := request(s, "GET", "/v1/log?"+params, "")
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
}

// The events are the lines of log; and from whatever id on they are asked for again, what comes is what came behind it, and nothing else.
func TestEventsResumeAtEachID(t *testing.T) {
	s := newFullSource(t)
	for _, params := range []string{"", "tenant_id=other", "type=gap,damaged", "raw=true", "object_key=k3", "from=offset:20&to=offset:40", "object_key=never"} {
		all := askEvents(t, s, params, "")
		if params == "from=offset:20&to=offset:40" {
			params = "to=offset:40" // the id stands for the beginning
		}
		var data, ids []string
		for _, e := range all {
			if e.data != "" {
				data, ids = append(data, e.data), append(ids, e.id)
			}
		}
		if !strings.HasPrefix(params, "to") {
			if want := lines(t, s, params); len(data) > 0 && !slices.Equal(data, want) || len(data) == 0 && want[0] != "" {
				t.Errorf("%q: %d events, %d lines", params, len(data), len(want))
			}
		}
		if end := all[len(all)-1]; end.data != "" || strings.Contains(end.id, "/") {
			t.Errorf("%q ends with %+v, not with how far all was told", params, end)
		}
		for i, id := range ids {
			var rest []string
			for _, e := range askEvents(t, s, params, id) {
				if e.data != "" {
					rest = append(rest, e.data)
				}
			}
			if !slices.Equal(rest, data[i+1:]) {
				t.Errorf("%q, behind %s: %d events, want %d", params, id, len(rest), len(data)-i-1)
			}
		}
		if rest := askEvents(t, s, params, all[len(all)-1].id); len(rest) != 1 || rest[0].data != "" {
			t.Errorf("%q: behind the end: %+v", params, rest)
		}
	}
}

// Pages put together are the whole, of log and of objects.
func TestPages(t *testing.T) {
	s := newFullSource(t)
	for _, params := range []string{"log?", "log?tenant_id=other&", "objects?state=any&at=offset:50&"} {
		whole := request(s, "GET", "/v1/"+params, "").Body.String()
		for _, size := range []int{1, 3, 7, 1000} {
			var got bytes.Buffer
			for after, pages := "", 0; ; pages++ {
				target := fmt.Sprintf("/v1/%spage=%d", params, size)
				if after != "" {
					target += "&after=" + url.QueryEscape(after)
				}
				w := request(s, "GET", target, "")
				if w.Code != 200 || pages > 500 {
					t.Fatalf("%s: %d, page %d: %s", target, w.Code, pages, w.Body)
				}
				text := w.Body.String()
				n := strings.Count(text, "\n")
				begin := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
				var next struct{ Next string }
				if n > 0 && json.Unmarshal([]byte(text[begin:]), &next) == nil && next.Next != "" {
					text, n = text[:begin], n-1
				}
				got.WriteString(text)
				if n > size {
					t.Errorf("%s: %d lines", target, n)
				}
				if after = next.Next; after == "" {
					break
				}
			}
			if got.String() != whole {
				t.Errorf("%s by %d: %d lines, want %d", params, size, strings.Count(got.String(), "\n"), strings.Count(whole, "\n"))
			}
		}
	}
}

// What is wrong before the first event is a Problem, as of any other question.
func TestEventsRefused(t *testing.T) {
	s := newSource(t)
	for target, last := range map[string]string{"/v1/log": "x", "/v1/log?follow=false": "1000000/7", "/v1/log?to=now&follow=true": "", "/v1/log?source=nobody": "", "/v1/log?limit=x": "", "/v1/log?limt=3": "", "/v1/log?page=3": ""} {
		r := httptest.NewRequest("GET", target, nil)
		r.Header.Set("Accept", "text/html, text/event-stream;q=0.9")
		r.Header.Set("Last-Event-ID", last)
		w := httptest.NewRecorder()
		httpapi.Handler(s).ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s after %q: %d %s", target, last, w.Code, w.Body)
		}
	}
}
