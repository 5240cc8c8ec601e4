package mooncake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestBatchQuery(t *testing.T) {
	odd := []string{"a b", "a+b", "100%", "%41", "%zz", "x&keys=y", "l=r", "two\nlines", "nul\x00", "é", "日本", "😀", `q"\`, "/p?q#f", "\ufffd", "\t\r\x7f"}
	m := &master{objects: map[string]string{"mem": onMemory, "disk": onLocalDisk, "soon": notReady, "hmm": `{"ok":true}`}}
	for _, key := range odd {
		m.objects[key] = onMemory
	}
	c := serve(t, m, Options{})
	asked := append([]string{"mem", "disk", "soon", "hmm", "nope", "mem", "a,b", "", "\xff"}, odd...)
	answers, err := c.BatchQuery(t.Context(), keysOf(asked...))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Answer{
		"mem": {State: Readable, CPU: true}, "disk": {State: Readable, Disk: true}, "soon": {State: NotReady}, "nope": {State: NotFound},
		"hmm": {Reason: "the master says ok and names no replica"},
		"a,b": {State: Unaskable, Reason: WhyUnaskable([]byte("a,b"))}, "": {State: Unaskable, Reason: WhyUnaskable(nil)},
		"\xff": {State: Unaskable, Reason: WhyUnaskable([]byte("\xff"))},
	}
	for i, key := range asked {
		w, ok := want[key]
		if !ok {
			w = Answer{State: Readable, CPU: true}
		}
		if answers.Of[i] != w {
			t.Errorf("%q: %+v, want %+v", key, answers.Of[i], w)
		}
	}
	if len(m.asked) != 1 || slices.Contains(m.asked[0], "b") || slices.Contains(m.asked[0], "") || len(m.asked[0]) != len(asked)-4 {
		t.Errorf("asked for %q", m.asked)
	}
	if answers, err := c.BatchQuery(t.Context(), nil); err != nil || len(answers.Of) != 0 {
		t.Errorf("no keys: %v %v", answers, err)
	}
	if answers, err := c.BatchQuery(t.Context(), keysOf("x,y", "")); err != nil || len(answers.Of) != 2 || answers.Of[0].State != Unaskable || len(m.asked) != 1 {
		t.Errorf("none askable: %v %v, asked %q", answers, err, m.asked)
	}
}

func TestBatchQueryParts(t *testing.T) {
	m := &master{objects: map[string]string{}}
	var keys []string
	for i := range 25 {
		key := fmt.Sprintf("key-%02d", i)
		keys, m.objects[key] = append(keys, key), onMemory
	}
	c := serve(t, m, Options{BatchKeys: 10})
	answers, err := c.BatchQuery(t.Context(), keysOf(keys...))
	if err != nil || len(m.asked) != 3 || len(m.asked[2]) != 5 {
		t.Fatalf("%v, asked %q", err, m.asked)
	}
	for i, a := range answers.Of {
		if !a.CPU {
			t.Errorf("%s: %+v", keys[i], a)
		}
	}
	// By bytes: "key-00," is 7; a long key goes alone.
	m.asked = nil
	c = serve(t, m, Options{BatchBytes: 20})
	keys = []string{"key-00", "key-01", "key-02", strings.Repeat("x", 100), "key-03"}
	if _, err := c.BatchQuery(t.Context(), keysOf(keys...)); err != nil || fmt.Sprint(lengths(m.asked)) != "[2 1 1 1]" {
		t.Errorf("%v, asked %v", err, lengths(m.asked))
	}
}

func lengths(lists [][]string) []int {
	var n []int
	for _, l := range lists {
		n = append(n, len(l))
	}
	return n
}

// TestPoison: keys that the master stumbles over are found, and the others answered.
func TestPoison(t *testing.T) {
	for _, c := range []struct {
		name    string
		poison  []int
		maxKeys int // of the master's reply
		maxLine int
		calls   int // at most
	}{
		{"none", nil, 0, 0, 1},
		{"first", []int{0}, 0, 0, 22},
		{"last", []int{999}, 0, 0, 22},
		{"one", []int{637}, 0, 0, 22},
		{"two", []int{3, 700}, 0, 0, 42},
		{"neighbours", []int{499, 500}, 0, 0, 42},
		{"three", []int{3, 333, 700}, 0, 0, 60},
		{"a master that cuts its replies", nil, 300, 0, 10},
		{"a proxy that limits the request line", nil, 0, 8 << 10, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &master{objects: map[string]string{}, poison: map[string]bool{}, maxKeys: c.maxKeys, maxLine: c.maxLine}
			var keys []string
			for i := range 1000 {
				key := fmt.Sprintf("k-%08d", i)
				keys, m.objects[key] = append(keys, key), onMemory
			}
			for _, i := range c.poison {
				m.poison[keys[i]] = true
			}
			client := serve(t, m, Options{BatchKeys: 1000})
			answers, err := client.BatchQuery(t.Context(), keysOf(keys...))
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers.Of {
				if bad := slices.Contains(c.poison, i); bad != (a.State == Refused) || bad == a.CPU || bad != strings.Contains(a.Reason, "status 503") {
					t.Errorf("%s: %+v", keys[i], a)
				}
			}
			t.Logf("%d calls", len(m.requests))
			if len(m.requests) > c.calls {
				t.Errorf("%d calls, at most %d", len(m.requests), c.calls)
			}
		})
	}
}

func TestPoisonAlone(t *testing.T) {
	m := &master{poison: map[string]bool{"bad": true}}
	c := serve(t, m, Options{})
	answers, err := c.BatchQuery(t.Context(), keysOf("bad"))
	if err != nil || answers.Of[0].State != Refused || len(m.asked) != 2 || m.asked[1][0] != probeKey {
		t.Errorf("%+v, %v, asked %q", answers, err, m.asked)
	}
}

// TestIllMaster: a master that refuses everything is not asked for each key.
func TestIllMaster(t *testing.T) {
	m := &master{ill: true}
	clock := newFakeClock()
	c := serve(t, m, Options{Clock: clock, Random: func() float64 { return 0 }})
	var odd *BrokenReplyError
	for n := 1; n <= 2; n++ {
		answers, err := c.BatchQuery(t.Context(), keysOf("a", "b", "c", "d"))
		if answers.Of != nil || !errors.As(err, &odd) || odd.Status != 503 || odd.Excerpt != refusedText || len(m.asked) != 2*n {
			t.Fatalf("%v, %v, asked %q", answers, err, m.asked)
		}
	}
	if s := clock.sleeps(); fmt.Sprint(s) != "[300ms 300ms]" && fmt.Sprint(s) != "[300ms]" {
		t.Errorf("waited %v", s)
	}
}

func TestIsolationIsBounded(t *testing.T) {
	m := &master{poison: map[string]bool{}}
	var keys []string
	for i := range 64 {
		keys = append(keys, fmt.Sprint("k", i))
		m.poison[keys[i]] = i%2 == 0
	}
	c := serve(t, m, Options{IsolationCalls: 20})
	answers, err := c.BatchQuery(t.Context(), keysOf(keys...))
	if err != nil || len(m.requests) != 22 { // the first, the probe, 20 more
		t.Fatalf("%v, %d requests", err, len(m.requests))
	}
	count := map[State]int{}
	for i, a := range answers.Of {
		count[a.State]++
		if a.State == Refused && i%2 == 1 || a.State == NotFound && i%2 == 0 {
			t.Errorf("%s: %+v", keys[i], a)
		}
		if a.State == Skipped && !strings.Contains(a.Reason, "within 20 more calls") {
			t.Errorf("%s: %+v", keys[i], a)
		}
	}
	if count[Refused] == 0 || count[NotFound] == 0 || count[Skipped] == 0 || count[Unknown] != 0 {
		t.Errorf("%v", count)
	}
}

// TestIsolateRandom: whatever the poison, each key gets its own answer, and the calls are bounded.
func TestIsolateRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		n := 1 + r.IntN(200)
		q := &batch{answers: make([]Answer, n)}
		bad := make([]bool, n)
		for i := range n {
			q.part = append(q.part, i)
			bad[i] = r.IntN(n) < r.IntN(5)
		}
		calls, extra := 0, r.IntN(100)
		q.probe = func() error { return nil }
		q.ask = func(part []int) error {
			calls++
			for _, i := range part {
				if bad[i] {
					return &BrokenReplyError{refused: true}
				}
			}
			for _, i := range part {
				q.answers[i] = Answer{State: NotFound}
			}
			return nil
		}
		if err := q.isolate(extra); err != nil || calls > extra+1 {
			t.Fatalf("seed %d: %v, %d calls, at most %d", seed, err, calls, extra+1)
		}
		for i, a := range q.answers {
			if a.State != Skipped && (a.State == Refused) != bad[i] || a.State == Unknown || a.State == Skipped && calls <= extra {
				t.Fatalf("seed %d: %d of %d: %+v, poison %v, %d calls of %d", seed, i, n, a, bad[i], calls, extra+1)
			}
		}
	}
}

// TestBatchReplies: a reply that is not about the asked keys is worth nothing.
func TestBatchReplies(t *testing.T) {
	body := func(entries string) string { return `{"success":true,"data":{` + entries + `}}` }
	ask := func(key string) string { return fmt.Sprintf("%q:%s", key, onMemory) }
	for _, c := range []struct{ name, reply, why string }{
		{"missing", body(ask("a")), "1 of the 2 keys did not come back"},
		{"none", body(""), "2 of the 2 keys did not come back"},
		{"null", `{"success":true,"data":null}`, "2 of the 2 keys did not come back"},
		{"another", body(ask("a") + "," + ask("b") + "," + ask("c")), `a key that was not asked for, "c"`},
		{"twice", body(ask("a") + "," + ask("b") + "," + ask("a")), `the key "a" twice`},
		{"malformed escape", body(ask("a") + "," + ask("b?")), `a key that was not asked for, "b?"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The probe is answered, so the blame falls on the keys; each alone gets the same odd reply.
			client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "keys="+probeKey {
					send(w, 200, "application/json", body(ask(probeKey)))
					return
				}
				send(w, 200, "application/json", c.reply)
			}), Options{IsolationCalls: 1})
			first := ""
			client.options.OnCall = func(call Call) {
				if first == "" {
					first = call.Err.Error()
				}
			}
			answers, err := client.BatchQuery(t.Context(), keysOf("a", "b"))
			if err != nil || !strings.Contains(first, c.why) {
				t.Fatalf("%v, first call: %v", err, first)
			}
			if answers.Of[1].State != Skipped && answers.Of[1].State != Refused {
				t.Errorf("%+v", answers)
			}
		})
	}
}
