package mooncaketest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/event"
)

// master is a Sim driven by hand, with its admin API.
type master struct {
	*Sim
	t     *testing.T
	admin *Admin
	url   string
}

func newMaster(t *testing.T, so SimOptions, ao AdminOptions) *master {
	t.Helper()
	sim := newSim(t, so)
	t.Cleanup(func() { sim.Publisher().Kill() })
	admin := NewAdmin(sim, ao)
	server := httptest.NewServer(admin)
	t.Cleanup(server.Close)
	return &master{sim, t, admin, server.URL}
}

// answer is a reply as it came.
type answer struct {
	code        int
	contentType []string // nil: none
	body        string
}

// try asks for a path and its raw query.
func (m *master) try(target string) (answer, error) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	request.URL.Path, request.URL.RawQuery, _ = strings.Cut(target, "?")
	return ask(m.t, request)
}

func ask(t *testing.T, request *http.Request) (answer, error) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.ContentLength != int64(len(body)) || response.TransferEncoding != nil) {
		t.Errorf("%s: Content-Length %d for %d bytes, Transfer-Encoding %v", request.URL, response.ContentLength, len(body), response.TransferEncoding)
	}
	return answer{response.StatusCode, response.Header["Content-Type"], string(body)}, err
}

func (m *master) get(target string) answer {
	m.t.Helper()
	a, err := m.try(target)
	if err != nil {
		m.t.Fatalf("%s: %v", target, err)
	}
	return a
}

func (m *master) want(target string, code int, body string) {
	m.t.Helper()
	if a := m.get(target); a.code != code || a.body != body {
		m.t.Errorf("%s:\ngot  %d %s\nwant %d %s", target, a.code, a.body, code, body)
	}
}

// listing returns the keys listed, sorted.
func (m *master) listing() []string {
	m.t.Helper()
	a := m.get("/get_all_keys")
	if a.code != http.StatusOK || !slices.Equal(a.contentType, []string{"text/plain; version=0.0.4"}) {
		m.t.Fatalf("listing: %+v", a)
	}
	keys := strings.SplitAfter(a.body, "\n")
	if last := len(keys) - 1; keys[last] != "" {
		m.t.Errorf("the last line %q has no end", keys[last])
	}
	keys = keys[:len(keys)-1]
	for i := range keys {
		keys[i] = strings.TrimSuffix(keys[i], "\n")
	}
	slices.Sort(keys)
	return keys
}

// verdict is what a query says of one key: "cpu", "disk", "cpu,disk" or an error.
func (m *master) verdicts(query string) map[string]string {
	m.t.Helper()
	a := m.get("/batch_query_keys?" + query)
	var out struct {
		Success bool
		Data    map[string]struct {
			OK              bool
			Error           *string
			Values          []any
			LocalDiskValues []any `json:"local_disk_values"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.code != http.StatusOK || !out.Success {
		m.t.Fatalf("%s: %d %s, %v", query, a.code, a.body, err)
	}
	verdicts := map[string]string{}
	for key, v := range out.Data {
		if v.OK != (v.Error == nil) || v.OK != (v.Values != nil) {
			m.t.Errorf("%q: %+v", key, v)
		}
		if v.OK {
			verdicts[key] = Object{"", key, len(v.Values) > 0, len(v.LocalDiskValues) > 0}.media()
		} else {
			verdicts[key] = *v.Error
		}
	}
	return verdicts
}

func (m *master) do(changes ...Change) {
	m.t.Helper()
	if err := m.Do(changes...); err != nil {
		m.t.Fatal(err)
	}
}

func (m *master) silently(changes ...Change) {
	m.t.Helper()
	if err := m.Silently(changes...); err != nil {
		m.t.Fatal(err)
	}
}

func stored(tenant, medium, key string) Change {
	return Change{Type: event.Stored, Tenant: tenant, Medium: medium, Key: key}
}

func removed(tenant, medium, key string) Change {
	return Change{Type: event.Removed, Tenant: tenant, Medium: medium, Key: key}
}

// The recorded replies of spec/master-admin.md, byte by byte.
func TestAdminRecordedReplies(t *testing.T) {
	m := newMaster(t, SimOptions{Store: StoreOptions{Segments: 1}}, AdminOptions{})
	m.want("/get_all_keys", 200, "")
	m.do(put("a"), stored("default", Disk, "d"))
	m.BeginPut("default", "begun")
	if err := m.Publisher().WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}

	m.want("/health", 200, `{"status":"ok","role":"leader","ha_state":"serving","service_ready":true,"leader_address":null,"view_version":null}`)
	m.want("/role", 200, "leader")
	if keys := m.listing(); !slices.Equal(keys, []string{"a", "begun", "d"}) {
		t.Errorf("listed %q", keys)
	}
	m.want("/batch_query_keys?keys=a,nope", 200, `{"success":true,"data":{`+
		`"a":{"ok":true,"error":null,"values":[{"size_":1024,"buffer_address_":4294967296,"protocol_":"tcp","transport_endpoint_":"127.0.0.1:17001"}],"disk_values":null,"local_disk_values":null,"nof_values":null},`+
		`"nope":{"ok":false,"error":"OBJECT_NOT_FOUND","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}}}`)
	m.want("/batch_query_keys?keys=d", 200, `{"success":true,"data":{"d":{"ok":true,"error":null,`+
		`"values":[],"disk_values":null,"local_disk_values":[{"client_id":"1-2","object_size":1048576,"transport_endpoint":"127.0.0.1:17030"}],"nof_values":null}}}`)
	m.want("/batch_query_keys?keys=begun", 200, `{"success":true,"data":{"begun":{"ok":false,"error":"REPLICA_IS_NOT_READY","values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}}}`)
	for _, none := range []string{"", "?", "?key=a", "?keys=", "?keys"} {
		m.want("/batch_query_keys"+none, 400, `{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`)
	}
}

func TestAdminUnknown(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	for _, path := range []string{"/", "/query_key?key=a", "/get_all_keys/", "/metrics", "/HEALTH"} {
		m.want(path, 404, "404 Not Found")
	}
	for _, path := range []string{"/health", "/get_all_keys", "/kv_events/status"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := ask(t, request); err != nil || a.code != 404 || a.body != "404 Not Found" {
			t.Errorf("POST %s: %+v, %v", path, a, err)
		}
	}
}

func TestAdminStatus(t *testing.T) {
	m := newMaster(t, SimOptions{Publisher: Options{QueueCapacity: 2}}, AdminOptions{})
	status := func() string { return m.get("/kv_events/status").body }
	m.Publisher().Hold(true)
	m.do(put("a"), put("b"), put("c"))
	if got := status(); got != `{"enabled":true,"published_batches":0,"published_events":0,"dropped_events":1,"skipped_keyless_events":0}` {
		t.Error(got)
	}
	m.Publisher().Hold(false)
	waitIdle(t, m.Publisher())
	if got := status(); got != `{"enabled":true,"published_batches":1,"published_events":2,"dropped_events":1,"skipped_keyless_events":0}` {
		t.Error(got)
	}
	m.admin.Set(func(o *AdminOptions) { o.OldStatus = true })
	if got := status(); got != `{"enabled":true,"published_batches":1,"published_events":2,"dropped_events":1,"skipped_unparsed_keys":0}` {
		t.Error(got)
	}
	m.admin.Set(func(o *AdminOptions) { o.NoPublisher = true })
	if got := status(); got != `{"enabled":false,"published_batches":0,"published_events":0,"dropped_events":0,"skipped_unparsed_keys":0}` {
		t.Error(got)
	}

	keyless := newMaster(t, SimOptions{Publisher: Options{NoObjectKey: true}}, AdminOptions{})
	keyless.do(put("a"), put("b"))
	keyless.want("/kv_events/status", 200, `{"enabled":true,"published_batches":0,"published_events":0,"dropped_events":0,"skipped_keyless_events":2}`)
	if keys := keyless.listing(); !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("listed %q", keys)
	}
}

func TestAdminStandby(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("a"))
	m.SetStandby(true)
	for _, path := range []string{"/kv_events/status", "/get_all_keys", "/batch_query_keys?keys=a", "/batch_query_keys", "/get_segments_detail"} {
		m.want(path, 503, `{"success":false,"error_code":-1011,"error_message":"service plane is not active"}`)
	}
	m.want("/role", 200, "standby")
	if a := m.get("/health"); a.code != 200 || !strings.Contains(a.body, `"role":"standby"`) || !strings.Contains(a.body, `"service_ready":false`) {
		t.Errorf("%+v", a)
	}
	m.want("/nothing", 404, "404 Not Found")
	m.SetStandby(false)
	m.want("/role", 200, "leader")
	if keys := m.listing(); !slices.Equal(keys, []string{"a"}) {
		t.Errorf("listed %q", keys)
	}
}

// A listing covers the tenant default alone, and shows a key once, whatever it is on.
func TestAdminTenants(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("a"), stored("default", Disk, "a"), stored("", CPU, "b"), stored("tenant-1", CPU, "c"), stored("x", Disk, "a"))
	if keys := m.listing(); !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("listed %q", keys)
	}
	if got := fmt.Sprint(m.verdicts("keys=a,b,c")); got != "map[a:cpu,disk b:cpu c:OBJECT_NOT_FOUND]" {
		t.Error(got)
	}
	m.do(removed("default", CPU, "a"), removed("default", CPU, "b"), Change{Type: event.Cleared, Tenant: "x"})
	if got := fmt.Sprint(m.listing(), m.verdicts("keys=a,b")); got != "[a] map[a:disk b:OBJECT_NOT_FOUND]" {
		t.Error(got)
	}
	m.do(Change{Type: event.Cleared, Tenant: ""})
	m.want("/get_all_keys", 200, "")
}

// The recorded reply, and ids that stay through a restart and never come back once unmounted.
func TestAdminSegments(t *testing.T) {
	recorded := []Segment{{ID: "6575583421266532899-3993405531102924475", ClientID: "380093182624849937-8201255604908860563", Endpoint: "127.0.0.1:17002", used: 56623104}}
	const want = `{"total_segments":1,"segments":[{"segment_name":"127.0.0.1:17002","segment_id":"6575583421266532899-3993405531102924475","client_id":"380093182624849937-8201255604908860563",` +
		`"base_address":"0x100000000","size_bytes":67108864,"size_human":"0.0625 GiB","te_endpoint":"127.0.0.1:17002","protocol":"tcp","status":"OK","allocator_used_bytes":56623104,` +
		`"allocator_capacity_bytes":67108864,"allocator_usage_percent":8.4375E1}]}`
	if got := string(appendSegments(nil, recorded, 64<<20)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	m := newMaster(t, SimOptions{Store: StoreOptions{Segments: 2}}, AdminOptions{})
	ids := func() (ids []string, used []int) {
		var out struct {
			Total    int `json:"total_segments"`
			Segments []struct {
				ID   string `json:"segment_id"`
				Used int    `json:"allocator_used_bytes"`
			}
		}
		a := m.get("/get_segments_detail")
		if err := json.Unmarshal([]byte(a.body), &out); err != nil || out.Total != len(out.Segments) {
			t.Fatalf("%s: %v", a.body, err)
		}
		for _, s := range out.Segments {
			ids, used = append(ids, s.ID), append(used, s.Used)
		}
		return ids, used
	}
	for i := range 10 {
		m.do(put(fmt.Sprint(i)))
	}
	m.do(stored("default", Disk, "1"), stored("default", Disk, "2"))
	before, used := ids()
	if len(before) != 2 || used[0] != 5*1024 || used[1] != 5*1024 {
		t.Fatalf("%v %v", before, used)
	}
	sent := m.Totals()
	lost, err := m.UnmountSegment(before[0])
	if err != nil || lost != 5 {
		t.Fatalf("%d objects lost, %v", lost, err)
	}
	if left, _ := ids(); !slices.Equal(left, before[1:]) {
		t.Errorf("segments %v", left)
	}
	if keys := m.listing(); len(keys) != 6 { // 5 in the other segment, and the copy on disk of one that was in this one
		t.Errorf("listed %q", keys)
	}
	waitIdle(t, m.Publisher())
	if now := m.Totals(); now.PublishedEvents > 12 || now.PublishedEvents < sent.PublishedEvents {
		t.Errorf("events of an unmount: %+v", now)
	}
	if again := m.MountSegment("127.0.0.1:17001"); slices.Contains(before, again.ID) {
		t.Error("an id came back")
	}
	if _, err := m.UnmountSegment(before[0]); err == nil {
		t.Error("unmounted twice")
	}
	if err := m.Restart(); err != nil {
		t.Fatal(err)
	}
	if after, used := ids(); !slices.Equal(after, before) || used[0] != 0 {
		t.Errorf("after a restart %v %v, before %v", after, used, before)
	}
}

// For the time that Standby gives, each process is a standby: on the publisher's clock.
func TestAdminStandbyByTime(t *testing.T) {
	clock := newClock()
	m := newMaster(t, SimOptions{Standby: 10 * time.Second, Publisher: Options{Now: clock.now}}, AdminOptions{})
	role := func() string { return m.get("/role").body }
	for range 2 {
		clock.add(9999 * time.Millisecond)
		if role() != "standby" || !m.IsStandby() {
			t.Error("the leader too early")
		}
		clock.add(time.Millisecond)
		if role() != "leader" || m.IsStandby() {
			t.Error("the leader too late")
		}
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}
