package mooncaketest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// at runs f once, when a request of this path has come to this step.
func at(path string, stage Stage, n int, f func()) func(Step) {
	var once sync.Once
	return func(s Step) {
		if s.Path == path && s.Stage == stage && s.N == n {
			once.Do(f)
		}
	}
}

// keyIn makes up a key that lies in a shard.
func keyIn(d *directory, shard int, prefix string) string {
	for i := 0; ; i++ {
		key := fmt.Sprint(prefix, i)
		if of, _ := d.shard(key); of == &d.shards[shard] {
			return key
		}
	}
}

// A listing is not one moment: what moves between its shards while it walks is missed, or shown though it is gone.
func TestAdminListingIsNotOneMoment(t *testing.T) {
	m := newMaster(t, SimOptions{Store: StoreOptions{Shards: 4}}, AdminOptions{})
	first, last := keyIn(m.store.directory, 0, "f"), keyIn(m.store.directory, 3, "l")
	early, late := keyIn(m.store.directory, 1, "e"), keyIn(m.store.directory, 2, "t")
	m.do(put(first), put(last))
	m.admin.Set(func(o *AdminOptions) {
		o.OnStep = at("/get_all_keys", Read, 2, func() {
			m.do(removed("default", CPU, first), removed("default", CPU, last), put(early), put(late))
		})
	})
	if got := m.listing(); !slices.Equal(got, []string{first, late}) {
		t.Errorf("listed %q: want one that is gone and one that is new, though %q never were there at once", got, []string{first, late})
	}
	if got := m.verdicts("keys=" + first); !maps.Equal(got, map[string]string{first: "OBJECT_NOT_FOUND"}) {
		t.Errorf("gone since the listing: %q", got)
	}
	m.admin.Set(func(o *AdminOptions) { o.OnStep = nil })
	if got := m.listing(); !slices.Equal(got, []string{early, late}) {
		t.Errorf("listed %q", got)
	}
}

// Nor is a query of several keys.
func TestAdminQueryIsNotOneMoment(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("a"), put("b"))
	m.admin.Set(func(o *AdminOptions) {
		o.OnStep = at("/batch_query_keys", Read, 1, func() {
			m.do(removed("default", CPU, "a"), removed("default", CPU, "b"))
		})
	})
	if got := fmt.Sprint(m.verdicts("keys=a,b")); got != "map[a:cpu b:OBJECT_NOT_FOUND]" {
		t.Error(got)
	}
}

func TestAdminSteps(t *testing.T) {
	var steps []string
	m := newMaster(t, SimOptions{Store: StoreOptions{Shards: 3}}, AdminOptions{OnStep: func(s Step) {
		steps = append(steps, fmt.Sprint(s.Path, "?", s.Query, " ", int(s.Stage), " ", s.N))
	}})
	for _, target := range []string{"/get_all_keys", "/batch_query_keys?keys=a,b", "/role"} {
		m.get(target)
	}
	if got := strings.Join(steps, "; "); got != "/get_all_keys? 0 0; /get_all_keys? 1 1; /get_all_keys? 1 2; /get_all_keys? 2 0; "+
		"/batch_query_keys?keys=a,b 0 0; /batch_query_keys?keys=a,b 1 1; /batch_query_keys?keys=a,b 2 0; /role? 0 0; /role? 2 0" {
		t.Error(got)
	}
}

// Puts that were begun are listed and not readable; they end, or are taken back.
func TestAdminPendingPuts(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.BeginPut("default", "ends")
	m.BeginPut("", "given up")
	m.BeginPut("tenant-1", "elsewhere")
	if keys := m.listing(); !slices.Equal(keys, []string{"ends", "given up"}) {
		t.Errorf("listed %q", keys)
	}
	query := "keys=ends,given%20up,elsewhere"
	if got := fmt.Sprint(m.verdicts(query)); got != "map[elsewhere:OBJECT_NOT_FOUND ends:REPLICA_IS_NOT_READY given up:REPLICA_IS_NOT_READY]" {
		t.Error(got)
	}
	if n := len(stateOf(m.store)); n != 0 {
		t.Errorf("%d objects are readable", n)
	}
	m.do(put("ends"))
	m.AbandonPut("default", "given up")
	m.AbandonPut("default", "ends") // has ended
	if got := fmt.Sprint(m.verdicts(query)); got != "map[elsewhere:OBJECT_NOT_FOUND ends:cpu given up:OBJECT_NOT_FOUND]" {
		t.Error(got)
	}
	waitIdle(t, m.Publisher())
	if n := m.Totals().PublishedEvents; n != 1 {
		t.Errorf("%d events", n)
	}
}

// After a restart there are no keys and the counters are 0; neither a request nor a connection survives it.
func TestAdminRestart(t *testing.T) {
	m := newMaster(t, SimOptions{Store: StoreOptions{Shards: 8}}, AdminOptions{})
	m.do(put("a"))
	waitIdle(t, m.Publisher())
	for _, c := range []struct {
		target string
		stage  Stage
		n      int
	}{
		{"/get_all_keys", Begun, 0}, {"/get_all_keys", Read, 5}, {"/get_all_keys", Ready, 0},
		{"/batch_query_keys?keys=a,b", Read, 1}, {"/kv_events/status", Ready, 0}, {"/health", Begun, 0},
	} {
		path, _, _ := strings.Cut(c.target, "?")
		m.do(put("b"))
		m.admin.Set(func(o *AdminOptions) {
			o.OnStep = at(path, c.stage, c.n, func() {
				if err := m.Restart(); err != nil {
					t.Error(err)
				}
			})
		})
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // net/http asks again on a kept connection
		if response, err := client.Get(m.url + c.target); err == nil {
			t.Errorf("%v: answered with %s", c, response.Status)
			response.Body.Close()
		}
		m.want("/get_all_keys", 200, "")
		m.want("/kv_events/status", 200, `{"enabled":true,"published_batches":0,"published_events":0,"dropped_events":0,"skipped_keyless_events":0}`)
	}
	if m.Starts() != 7 {
		t.Errorf("%d starts", m.Starts())
	}
}

func TestAdminServerRestart(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	server, err := m.admin.Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	m.url = server.URL()
	var asked, cut int
	m.admin.Set(func(o *AdminOptions) { o.OnStep = at("/role", Begun, 0, func() { asked++ }) })
	m.want("/role", 200, "leader")
	if err := m.Restart(); err != nil {
		t.Fatal(err)
	}
	// The kept connection ends without an answer; net/http asks again on a new one.
	transport := &http.Transport{}
	client := http.Client{Transport: transport}
	get := func() error {
		response, err := client.Get(m.url + "/health")
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	m.want("/role", 200, "leader")
	for range 3 {
		if err := get(); err != nil {
			cut++
		}
	}
	if asked != 1 || cut != 0 {
		t.Errorf("asked %d times, %d failed", asked, cut)
	}
	// A long request line.
	m.do(put("here"))
	if a := m.get("/batch_query_keys?keys=here," + strings.Repeat("0123456789,", 400_000)); !strings.Contains(a.body, `"here":{"ok":true`) {
		t.Errorf("%d %.200s", a.code, a.body)
	}
}

// Each fault as a client sees it.
func TestAdminFaults(t *testing.T) {
	m := newMaster(t, SimOptions{}, AdminOptions{})
	m.do(put("some-key"))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	try := func(ctx context.Context) (code int, body string, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url+"/get_all_keys", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, "", err
		}
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		return response.StatusCode, string(b), err
	}
	m.admin.Fail("/get_all_keys", Error500, Cut, Hang)
	m.want("/role", 200, "leader")
	if code, body, err := try(t.Context()); code != 500 || body != "500 Internal Server Error" || err != nil {
		t.Errorf("500: %d %q %v", code, body, err)
	}
	if code, body, err := try(t.Context()); code != 200 || body != "some" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %d %q %v", code, body, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m.admin.Set(func(o *AdminOptions) { o.OnStep = at("/get_all_keys", Begun, 0, cancel) })
	if _, _, err := try(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("hang: %v", err)
	}
	m.admin.Fail("", Reset)
	if code, _, err := try(t.Context()); err == nil {
		t.Errorf("reset: %d", code)
	}
	if code, body, err := try(t.Context()); code != 200 || body != "some-key\n" || err != nil {
		t.Errorf("no fault: %d %q %v", code, body, err)
	}
}

// Errors come with their probability, from the seed.
func TestAdminErrorRate(t *testing.T) {
	sim := newSim(t, SimOptions{})
	t.Cleanup(func() { sim.Publisher().Kill() })
	fates := func(seed uint64) (all []string) {
		a := NewAdmin(sim, AdminOptions{Errors: 0.3, Seed: seed})
		for range 2000 {
			if _, fault, fails := a.fate("/role"); fails {
				all = append(all, fault.String())
			} else {
				all = append(all, "")
			}
		}
		return all
	}
	got := fates(1)
	n := map[string]int{}
	for _, f := range got {
		n[f]++
	}
	if n[""] < 1300 || n[""] > 1500 || n["500"] < 90 || n["hang"] < 90 || n["cut"] < 90 || n["reset"] < 90 || len(n) != 5 {
		t.Errorf("%v", n)
	}
	if !slices.Equal(got, fates(1)) || slices.Equal(got, fates(2)) {
		t.Error("the seed does not decide")
	}
}

func TestAdminLatencyIsSpread(t *testing.T) {
	var slept []time.Duration
	m := newMaster(t, SimOptions{Store: StoreOptions{Shards: 100}}, AdminOptions{
		Latency: 800 * time.Millisecond,
		Sleep:   func(_ context.Context, d time.Duration) { slept = append(slept, d) },
	})
	sum := func() (sum time.Duration) {
		for _, d := range slept {
			sum += d
		}
		return sum
	}
	for target, parts := range map[string]int{"/get_all_keys": 8, "/batch_query_keys?keys=a,b,c": 3, "/role": 1, "/batch_query_keys?keys=a": 1, "/nothing": 1} {
		slept = nil
		m.get(target)
		if len(slept) != parts || sum() != 800*time.Millisecond {
			t.Errorf("%s: slept %v", target, slept)
		}
	}
}
