package httpapi_test

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query/httpapi"
)

// TestHostileQuestions: what no command sends is refused in words, as a question that is wrong, not as a failure.
func TestHostileQuestions(t *testing.T) {
	s := newSource(t)
	long := strings.Repeat("k", 25<<20)
	for _, c := range []struct {
		method, target, body string
		status               int
		say                  string
	}{
		{"POST", "/v1/lookup", `{"object_key":"` + long + `"}`, 400, "longer than 24 MiB"},
		{"POST", "/v1/lookup", strings.Repeat("[", 1<<20), 400, "the array is of objects"},
		{"POST", "/v1/lookup", `{"object_key":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, 400, "line 1"},
		{"POST", "/v1/lookup", `{"object_key_base64":"!"}`, 400, "object_key_base64"},
		{"POST", "/v1/lookup", "{\"object_key\":\"k\"}\n\n[]", 400, "line 3"},
		{"POST", "/v1/history", "object_key=" + long, 400, "more than 24 MiB"},
		{"POST", "/v1/history", "object_key=%zz", 400, "parameters"},
		{"GET", "/v1/history?object_key=%zz", "", 400, "parameters"},
		{"POST", "/v1/objects", "limit=-1", 400, "limit"},
		{"POST", "/v1/objects", "limit=99999999999999999999", 400, "limit"},
		{"GET", "/v1/objects?after=" + url.QueryEscape(`{"object_key_base64":"%"}`), "", 200, ""},
		{"GET", "/v1/objects?after=" + url.QueryEscape(`{"source":"elsewhere","object_key":"k"}`), "", 200, ""},
		{"GET", "/v1/objects?at=offset:18446744073709551615", "", 400, "an offset is a number"},
		{"GET", "/v1/log?after=9223372036854775807", "", 200, ""},
		{"GET", "/v1/export?source=nobody", "", 400, "nobody"},
		{"GET", "/v1/activity?bucket=-1s", "", 400, "bucket"},
		{"GET", "/v1/" + strings.Repeat("x", 1<<16), "", 404, ""},
		{"DELETE", "/v1/stats", "", 405, ""},
	} {
		w := request(s, c.method, c.target, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.say) {
			t.Errorf("%s %.60s %.60s: %d %.200s, want %d and %q", c.method, c.target, c.body, w.Code, w.Body, c.status, c.say)
		}
	}
}

// TestLongParameters: a key of 1 MB, longer than a line of a header may be, is asked about over a socket as any other.
func TestLongParameters(t *testing.T) {
	s := newSource(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: httpapi.Handler(s)}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	client := httpapi.NewClient(path)
	key := strings.Repeat("\xff\x00k", 1<<20/3)
	values := url.Values{"object_key_base64": {base64.StdEncoding.EncodeToString([]byte(key))}, "notes": {"true"}}
	lines := 0
	for _, name := range []string{"history", "log", "objects"} {
		switch name {
		case "log":
			values.Del("notes")
		case "objects":
			values = url.Values{"prefix": {key}}
		}
		if err := client.Ask(t.Context(), name, values, nil, func(b []byte) error { lines++; return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if lines == 0 {
		t.Error("no line at all")
	}
}
