package mooncake

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       Status
		err        string
	}{
		{"as it was", statusOld, Status{Enabled: true, PublishedBatches: 22, PublishedEvents: 23, Unparsed: 17, UnparsedKnown: true}, ""},
		{"as it is", statusNew, Status{Enabled: true, PublishedBatches: 22, PublishedEvents: 23, DroppedEvents: 4, Keyless: 17, KeylessKnown: true}, ""},
		{"neither", `{"enabled":true,"published_batches":1,"published_events":2,"dropped_events":3}`,
			Status{Enabled: true, PublishedBatches: 1, PublishedEvents: 2, DroppedEvents: 3}, ""},
		{"both, and more", `{"more":{"x":[1]},"enabled":true,"published_batches":18446744073709551615,"published_events":2,"dropped_events":0,"skipped_keyless_events":0,"skipped_unparsed_keys":0}`,
			Status{Enabled: true, PublishedBatches: 1<<64 - 1, PublishedEvents: 2, KeylessKnown: true, UnparsedKnown: true}, ""},
		{"off", `{"enabled":false,"published_batches":0,"published_events":0,"dropped_events":0,"skipped_unparsed_keys":0}`, Status{UnparsedKnown: true}, ""},
		{"off, without counters", `{"enabled":false}`, Status{}, ""},
		{"no batches", `{"enabled":true,"published_events":2,"dropped_events":3}`, Status{}, `field "published_batches" is missing`},
		{"no events", `{"enabled":true,"published_batches":2,"dropped_events":3}`, Status{}, `field "published_events" is missing`},
		{"no drops", `{"enabled":true,"published_batches":1,"published_events":2}`, Status{}, `field "dropped_events" is missing`},
		{"null", `{"enabled":true,"published_batches":null,"published_events":2,"dropped_events":3}`, Status{}, `field "published_batches" is missing`},
		{"no enabled", `{"published_batches":1,"published_events":2,"dropped_events":3}`, Status{}, `field "enabled" is missing`},
		{"negative", `{"enabled":true,"published_batches":-1,"published_events":2,"dropped_events":3}`, Status{}, `field "published_batches" is a number -1`},
		{"text", `{"enabled":true,"published_batches":"22","published_events":2,"dropped_events":3}`, Status{}, `field "published_batches" is a string`},
		{"a list", `[]`, Status{}, "want a JSON object"},
		{"nothing", ``, Status{}, "an empty body"},
		{"two", statusOld + statusOld, Status{}, "more follows"},
		{"cut", statusOld[:50], Status{}, "ends in the middle"},
		{"a page", "<html></html>", Status{}, "no JSON: invalid character '<'"},
		{"a standby, with 200", onStandby, Status{}, "a standby"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, always(200, "application/json", c.body), Options{})
			got, err := client.Status(t.Context())
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || got != (Status{}) {
					t.Errorf("%+v, %v, want %q", got, err, c.err)
				}
				return
			}
			if err != nil || got.Sent.IsZero() {
				t.Fatalf("%+v, %v", got, err)
			}
			got.Timing = Timing{}
			if got != c.want || got.LastSeq() != c.want.PublishedBatches+c.want.DroppedEvents {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		body  string
		want  Health
		ready bool
		err   string
	}{
		{healthy, Health{Status: "ok", Role: "leader", HAState: "serving", ServiceReady: true}, true, ""},
		{`{"status":"ok","role":"standby","ha_state":"standby","service_ready":false,"leader_address":"10.0.0.2:50051","view_version":7,"new":[]}`,
			Health{Status: "ok", Role: "standby", HAState: "standby", LeaderAddress: "10.0.0.2:50051", ViewVersion: 7}, false, ""},
		{`{"role":"leader","service_ready":false}`, Health{Role: "leader"}, false, ""},
		{`{"role":"standby","service_ready":true}`, Health{Role: "standby", ServiceReady: true}, false, ""},
		{`{"role":"leader","service_ready":true,"view_version":"x"}`, Health{Role: "leader", ServiceReady: true}, true, ""},
		{`{"status":"ok","role":"leader"}`, Health{}, false, `field "service_ready" is missing`},
		{`{"status":"ok","service_ready":true}`, Health{}, false, `field "role" is missing`},
		{`{"role":"leader","service_ready":"yes"}`, Health{}, false, `field "service_ready" is a string`},
		{`leader`, Health{}, false, "no JSON"},
	} {
		client := serve(t, always(200, "application/json", c.body), Options{})
		got, err := client.Health(t.Context())
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.body, err, c.err)
			}
			continue
		}
		got.Timing = Timing{}
		if err != nil || got != c.want || got.Ready() != c.ready {
			t.Errorf("%s: %+v, ready %v, %v", c.body, got, got.Ready(), err)
		}
	}
}

func TestSegments(t *testing.T) {
	recorded := Segment{ID: "6575583421266532899-3993405531102924475", Name: "127.0.0.1:17002", ClientID: "380093182624849937-8201255604908860563",
		Endpoint: "127.0.0.1:17002", Protocol: "tcp", Status: "OK", Size: 67108864, Used: 56623104}
	for _, c := range []struct {
		body string
		want []Segment
		err  string
	}{
		{oneSegment, []Segment{recorded}, ""},
		{`{"total_segments":0,"segments":[]}`, nil, ""},
		{`{"total_segments":0,"segments":null}`, nil, ""},
		{`{"total_segments":2,"segments":[{"segment_id":"a","size_bytes":1.5E1,"x":1},{"segment_id":"b","size_bytes":"?"}],"y":2}`, []Segment{{ID: "a"}, {ID: "b"}}, ""},
		{`{"segments":[]}`, nil, `field "total_segments" is missing`},
		{`{"total_segments":2,"segments":[{"segment_id":"a"}]}`, nil, "total_segments is 2, but 1 are listed"},
		{`{"total_segments":1}`, nil, "total_segments is 1, but 0 are listed"},
		{`{"total_segments":1,"segments":[{"segment_name":"a"}]}`, nil, "segment 1 of 1 has no segment_id"},
		{`{"total_segments":2,"segments":[{"segment_id":"a"},{"segment_id":"a"}]}`, nil, `segment_id "a" comes twice`},
		{oneSegment[:300], nil, "ends in the middle"},
	} {
		client := serve(t, always(200, "application/json", c.body), Options{})
		got, err := client.Segments(t.Context())
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v, %q", c.body, got, err, c.want, c.err)
		}
	}
}

// TestStandbyThenReady: a standby is told from trouble, and found ready as soon as it is.
func TestStandbyThenReady(t *testing.T) {
	m := &master{standby: true, objects: map[string]string{"a": onMemory}}
	clock := newFakeClock()
	c := serve(t, m, Options{Clock: clock})
	for range 10 {
		_, err := c.Status(t.Context())
		var off *StandbyError
		if !errors.As(err, &off) || off.Message != "service plane is not active" || !strings.Contains(err.Error(), c.URL()+"/kv_events/status") {
			t.Fatal(err)
		}
	}
	for _, d := range clock.sleeps() {
		if d < backoffMin || d > 2*backoffMin {
			t.Errorf("waited %v", d)
		}
	}
	for name, ask := range calls(c) {
		var off *StandbyError
		if err := ask(t.Context()); name != "health" && !errors.As(err, &off) || name == "health" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h, err := c.Health(t.Context()); err != nil || h.Ready() {
		t.Errorf("%+v, %v", h, err)
	}
	m.mu.Lock()
	m.standby = false
	m.mu.Unlock()
	if h, err := c.Health(t.Context()); err != nil || !h.Ready() {
		t.Errorf("%+v, %v", h, err)
	}
	for name, ask := range calls(c) {
		if err := ask(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKindNames(t *testing.T) {
	for k := range kindCount {
		if k.String() == "" || (&Timeouts{1, 1, 1, 1, 1, 1, 1}).of(k) != 1 {
			t.Errorf("kind %d", k)
		}
	}
	for s := Unknown; s <= Skipped; s++ {
		if fmt.Sprint(s) == "" {
			t.Errorf("state %d", uint8(s))
		}
	}
}
