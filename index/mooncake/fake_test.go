package mooncake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Replies as recorded (master-admin.md).
const (
	statusOld  = `{"enabled":true,"published_batches":22,"published_events":23,"dropped_events":0,"skipped_unparsed_keys":17}`
	statusNew  = `{"enabled":true,"published_batches":22,"published_events":23,"dropped_events":4,"skipped_keyless_events":17}`
	healthy    = `{"status":"ok","role":"leader","ha_state":"serving","service_ready":true,"leader_address":null,"view_version":null}`
	oneSegment = `{"total_segments":1,"segments":[{"segment_name":"127.0.0.1:17002","segment_id":"6575583421266532899-3993405531102924475","client_id":"380093182624849937-8201255604908860563",
      "base_address":"0x100000000","size_bytes":67108864,"size_human":"0.0625 GiB","te_endpoint":"127.0.0.1:17002","protocol":"tcp","status":"OK","allocator_used_bytes":56623104,
      "allocator_capacity_bytes":67108864,"allocator_usage_percent":8.4375E1}]}`
	batchReply = `{"success":true,"data":{
      "a":{"ok":true,"error":null,"values":[{"size_":1024,"buffer_address_":4294967296,"protocol_":"tcp","transport_endpoint_":"127.0.0.1:17001"}],"disk_values":null,"local_disk_values":null,"nof_values":null},
      "nope":{"ok":false,"error":"OBJECT_NOT_FOUND","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}}}`
	onMemory    = `{"ok":true,"error":null,"values":[{"size_":1024,"buffer_address_":4294967296,"protocol_":"tcp","transport_endpoint_":"127.0.0.1:17001"}],"disk_values":null,"local_disk_values":null,"nof_values":null}`
	onLocalDisk = `{"ok":true,"error":null,"values":[],"disk_values":null,"local_disk_values":[{"client_id":"1-2","object_size":1048576,"transport_endpoint":"127.0.0.1:17030"}],"nof_values":null}`
	notFound    = `{"ok":false,"error":"OBJECT_NOT_FOUND","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}`
	notReady    = `{"ok":false,"error":"REPLICA_IS_NOT_READY","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}`
	noKeys      = `{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`
	onStandby   = `{"success":false,"error_code":-1011,"error_message":"service plane is not active"}`
	refusedText = "503 Service Unavailable"
	missingText = "404 Not Found"
)

// master answers like the recorded ones, traps included.
type master struct {
	mu       sync.Mutex
	objects  map[string]string // key to entry
	poison   map[string]bool   // keys that fail the whole call, beyond those that are no UTF-8
	standby  bool
	ill      bool // every batch query fails
	maxKeys  int  // that a reply holds; 0: all
	maxLine  int  // of the query; 0: no limit
	requests []string
	asked    [][]string
}

func (m *master) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r.Method+" "+r.URL.Path)
	switch {
	case r.URL.Path == "/health":
		ready := !m.standby
		role := map[bool]string{true: "leader", false: "standby"}[ready]
		send(w, 200, "application/json", fmt.Sprintf(`{"status":"ok","role":%q,"ha_state":"serving","service_ready":%v,"leader_address":null,"view_version":null}`, role, ready))
	case m.standby:
		send(w, 503, "application/json", onStandby)
	case r.URL.Path == "/kv_events/status":
		send(w, 200, "application/json", statusOld)
	case r.URL.Path == "/get_all_keys":
		var b strings.Builder
		for key := range m.objects {
			b.WriteString(key + "\n")
		}
		send(w, 200, "text/plain; version=0.0.4", b.String())
	case r.URL.Path == "/get_segments_detail":
		send(w, 200, "application/json", oneSegment)
	case r.URL.Path == "/batch_query_keys":
		m.batch(w, r.URL.RawQuery)
	default:
		send(w, 404, "text/plain", missingText)
	}
}

func (m *master) batch(w http.ResponseWriter, query string) {
	value := strings.TrimPrefix(query, "keys=")
	if value == "" {
		send(w, 400, "application/json", noKeys)
		return
	}
	if m.maxLine > 0 && len(query) > m.maxLine {
		send(w, 414, "text/html", "<html><head><title>414 Request-URI Too Large</title></head></html>")
		return
	}
	keys := strings.Split(masterDecode(value), ",")
	m.asked = append(m.asked, keys)
	entries, seen := []string{}, map[string]bool{}
	for _, key := range keys {
		if !utf8.ValidString(key) || m.poison[key] || m.ill {
			send(w, 503, "", refusedText)
			return
		}
		if seen[key] || m.maxKeys > 0 && len(entries) == m.maxKeys {
			continue
		}
		seen[key] = true
		entry := m.objects[key]
		if entry == "" {
			entry = notFound
		}
		entries = append(entries, masterQuote(key)+":"+entry)
	}
	send(w, 200, "application/json", `{"success":true,"data":{`+strings.Join(entries, ",")+`}}`)
}

// masterDecode is the master's URL decoder: + is a space, and a malformed %x becomes ? and cuts the rest off.
func masterDecode(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] != '%':
			b = append(b, s[i])
		default:
			var c byte
			if n, err := fmt.Sscanf(s[i+1:min(i+3, len(s))], "%02x", &c); n != 1 || err != nil || i+2 >= len(s) {
				return string(append(b, '?'))
			}
			b = append(b, c)
			i += 2
		}
	}
	return string(b)
}

// masterQuote is a JSON string as the master writes it: everything but ASCII as \uXXXX.
func masterQuote(s string) string {
	var b strings.Builder
	quoted, _ := json.Marshal(s)
	for _, r := range string(quoted) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, u := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04X`, u)
		}
	}
	return b.String()
}

// send writes a reply with a Content-Length; without a kind it has no Content-Type.
func send(w http.ResponseWriter, status int, kind, body string) {
	w.Header()["Content-Type"] = nil
	if kind != "" {
		w.Header().Set("Content-Type", kind)
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// fakeClock moves only when something waits for it, or is told to.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newFakeClock() *fakeClock { return &fakeClock{now: time.Unix(1_800_000_000, 0)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *fakeClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	fired := make(chan time.Time, 1)
	fired <- c.now
	return fired, func() {}
}

func (c *fakeClock) sleeps() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slept
	c.slept = nil
	return s
}

// frozenClock's timers never fire.
type frozenClock struct{ *fakeClock }

func (c frozenClock) Timer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	return nil, func() {}
}

// serve starts a server and returns a client of it that does not pause, unless o says otherwise.
func serve(t testing.TB, h http.Handler, o Options) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	if o.URL == "" {
		o.URL = server.URL
	}
	if o.PauseFactor == 0 {
		o.PauseFactor = -1
	}
	if o.Clock == nil {
		o.Clock = newFakeClock()
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// always is a handler that gives one reply.
func always(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, status, kind, body) }
}

// raw is a handler that writes bytes to the connection and closes it.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(text))
	}
}

func keysOf(keys ...string) [][]byte {
	b := make([][]byte, len(keys))
	for i, k := range keys {
		b[i] = []byte(k)
	}
	return b
}
