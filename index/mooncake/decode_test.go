package mooncake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
)

// decodeAll gives the answers of a reply.
func decodeAll(r io.Reader) (map[string]Answer, error) {
	answers := map[string]Answer{}
	err := decodeBatch(r, func(key string, e *entry) error {
		if _, ok := answers[key]; ok {
			return fmt.Errorf("%q twice", key)
		}
		answers[key] = e.answer()
		return nil
	})
	return answers, err
}

func TestEntries(t *testing.T) {
	for _, c := range []struct {
		entry string
		want  Answer
	}{
		{onMemory, Answer{State: Readable, CPU: true}},
		{onLocalDisk, Answer{State: Readable, Disk: true}},
		{notFound, Answer{State: NotFound}},
		{notReady, Answer{State: NotReady}},
		{`{"ok":true,"error":null,"values":[],"disk_values":[{}],"local_disk_values":null,"nof_values":null}`, Answer{State: Readable, Disk: true}},
		{`{"ok":true,"error":null,"values":[{}],"disk_values":null,"local_disk_values":null,"nof_values":[{}]}`, Answer{State: Readable, CPU: true, Disk: true}},
		{`{"nof_values":[1],"ok":true}`, Answer{State: Readable, Disk: true}},
		{`{"ok":true,"values":[{}],"new":{"a":[1,{"b":null}]},"more":1e999,"tags":["x"]}`, Answer{State: Readable, CPU: true}},
		{`{"ok":true,"error":null,"values":[],"disk_values":[],"local_disk_values":[],"nof_values":[]}`, Answer{Reason: "the master says ok and names no replica"}},
		{`{"ok":true,"error":null,"values":null}`, Answer{Reason: "the master says ok and names no replica"}},
		{`{"ok":true}`, Answer{Reason: "the master says ok and names no replica"}},
		{`{"ok":true,"error":"STRANGE","values":[{}]}`, Answer{Reason: `the master says ok and "STRANGE"`}},
		{`{"ok":false,"error":"INTERNAL_ERROR"}`, Answer{Reason: `the master says "INTERNAL_ERROR"`}},
		{`{"ok":false,"error":null}`, Answer{Reason: "the master says neither ok nor why not"}},
		{`{"ok":false,"error":"OBJECT_NOT_FOUND","values":[{}]}`, Answer{Reason: `the master names replicas and the error "OBJECT_NOT_FOUND"`}},
		{`{"values":[{}]}`, Answer{Reason: `the master's entry has no "ok"`}},
		{`{}`, Answer{Reason: `the master's entry has no "ok"`}},
		// A class of replicas to come. On disk or not: unknown, unless disk is known anyway.
		{`{"ok":true,"values":[{}],"dfs_values":[{"path":"x"}]}`, Answer{Reason: `a replica of an unknown class, "dfs_values"`}},
		{`{"ok":true,"values":[{}],"dfs_values":{"path":"x"}}`, Answer{Reason: `a replica of an unknown class, "dfs_values"`}},
		{`{"ok":true,"values":[{}],"disk_values":[{}],"dfs_values":[{}]}`, Answer{State: Readable, CPU: true, Disk: true}},
		{`{"ok":true,"values":[{}],"dfs_values":[],"x_values":null,"y_values":{},"number_of_values":7}`, Answer{State: Readable, CPU: true}},
		{`{ "ok" : true , "values" : [ ] , "nof_values" : [ 1 ] }`, Answer{State: Readable, Disk: true}},
		{`{"\u006fk":true,"values":["]}",{"a":"\"}"}],"error":null}`, Answer{State: Readable, CPU: true}},
		{`{"ok":false,"error":"OBJECT_NOT\u005fFOUND"}`, Answer{State: NotFound}},
		// Names are exact.
		{`{"ok":true,"Values":[{}]}`, Answer{Reason: "the master says ok and names no replica"}},
	} {
		got, err := decodeAll(strings.NewReader(`{"success":true,"data":{"k":` + c.entry + `}}`))
		if err != nil || len(got) != 1 || got["k"] != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.entry, got, err, c.want)
		}
	}
}

func TestDecodeBatch(t *testing.T) {
	got, err := decodeAll(strings.NewReader(batchReply))
	want := map[string]Answer{"a": {State: Readable, CPU: true}, "nope": {State: NotFound}}
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	for n := range len(batchReply) {
		if _, err := decodeAll(strings.NewReader(batchReply[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}

	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	tooDeep := strings.Repeat("[", 1<<20)
	for _, c := range []struct{ reply, err string }{
		{`{"more":[1],"data":{},"success":true,"x":{"y":[]}}`, ""},
		{`{"success":true,"data":null}`, ""},
		{" {\n\"success\" : true ,\t\"data\":{ \"k\" : { \"ok\" : true , \"x\" : \"}\\\"]\" , \"\\u0076alues\" : [ ] , \"n\" : -1e9 } } }\r\n", ""},
		{`{"success":true}`, `field "data" is missing`},
		{`{"data":{}}`, `field "success" is missing`},
		{`{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`, "No keys provided"},
		{onStandby, "a standby"},
		{`{"success":true,"data":{}}x`, "more follows"},
		{`{"success":true,"data":{}}{}`, "more follows"},
		{`{"success":true,"data":{},"success":false}`, "twice"},
		{`{"success":true,"data":{},"data":{}}`, "twice"},
		{`{"success":true,"data":{"k":{"ok":true,"ok":false}}}`, "twice"},
		{`{"success":true,"data":{"k":{"values":[],"values":[1]}}}`, "twice"},
		{`{"success":true,"data":{"k":{"disk_values":[],"disk_values":[1]}}}`, "twice"},
		{`{"success":1,"data":{}}`, "success is 1, want true or false"},
		{`{"success":null,"data":{}}`, "success is null, want true or false"},
		{`{"success":true,"data":[]}`, "data is [, want an object"},
		{`{"success":true,"data":{"k":null}}`, "an entry is null, want an object"},
		{`{"success":true,"data":{"k":{"ok":"true"}}}`, `ok is "true", want true or false`},
		{`{"success":true,"data":{"k":{"ok":true,"values":{}}}}`, "values is {}, want an array or null"},
		{`{"success":true,"data":{"k":{"ok":true,"nof_values":3}}}`, "nof_values is 3, want an array or null"},
		{`{"success":true,"data":{"k":{"ok":false,"error":7}}}`, "error is 7, want a string or null"},
		{`{"success":true,"data":{"k":{"ok":true,"values":[` + deep + `]}}}`, ""},
		{`{"success":true,"data":{"k":{"ok":true,"values":[` + tooDeep, "max depth"},
		{`{"success":true,"data":{},"x":` + tooDeep, "max depth"},
		{`[]`, "want an object"}, {`null`, "is missing"}, {`"success"`, "want an object"},
		{`<html>`, "invalid character"}, {`503 Service Unavailable`, "want an object"},
	} {
		_, err := decodeAll(strings.NewReader(c.reply))
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%.80s: %v, want %q", c.reply, err, c.err)
		}
	}
}

// entries is a body of n entries that is never in memory as a whole. read is called now and then.
type entries struct {
	n, at int
	rest  string
	bytes int
	every func()
}

func (e *entries) Read(p []byte) (int, error) {
	for e.rest == "" {
		switch {
		case e.at == 0:
			e.rest = `{"success":true,"data":{`
		case e.at > 1 && e.at <= e.n:
			e.rest = ","
			fallthrough
		case e.at == 1:
			e.rest += fmt.Sprintf(`"%074d":%s`, e.at, onMemory)
		case e.at == e.n+1:
			e.rest = "}}"
		default:
			return 0, io.EOF
		}
		if e.at++; e.at%10_000 == 0 {
			e.every()
		}
	}
	n := copy(p, e.rest)
	e.rest, e.bytes = e.rest[n:], e.bytes+n
	return n, nil
}

// TestDecodeBatchMemory: a reply of 28 MB is never held.
func TestDecodeBatchMemory(t *testing.T) {
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	base, peak := live(), uint64(0)
	body := &entries{n: 100_000, every: func() { peak = max(peak, live()) }}
	came := 0
	err := decodeBatch(body, func(_ string, e *entry) error {
		if e.answer() == (Answer{State: Readable, CPU: true}) {
			came++
		}
		return nil
	})
	if err != nil || came != body.n {
		t.Fatalf("%d of %d entries, %v", came, body.n, err)
	}
	t.Logf("%d bytes, %d more live at most", body.bytes, int64(peak)-int64(base))
	if body.bytes < 27_500_000 {
		t.Errorf("only %d bytes", body.bytes)
	}
	if peak > base+1<<20 {
		t.Errorf("%d bytes live while decoding", peak-base)
	}
}

func BenchmarkDecodeBatch(b *testing.B) {
	const n = 100_000
	body, err := io.ReadAll(&entries{n: n, every: func() {}})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := decodeBatch(bytes.NewReader(body), func(string, *entry) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entry")
}

// FuzzDecodeBatch: what is accepted is JSON, and means what encoding/json makes of it.
func FuzzDecodeBatch(f *testing.F) {
	for _, s := range []string{batchReply, onStandby, noKeys, refusedText, `{"success":true,"data":{"\u00e9\ud83d\ude00":` + onLocalDisk + `}}`,
		`{"success":true,"data":{"k":` + notReady + `,"x":{"ok":true,"dfs_values":[1]}},"more":[{}]}`, `{"data":null,"success":true}`, `{"success":true,"data":{"a" 1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeAll(strings.NewReader(string(body)))
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON and was accepted", body)
		}
		var reply map[string]json.RawMessage
		var data map[string]map[string]json.RawMessage
		if err := json.Unmarshal(body, &reply); err != nil {
			t.Fatalf("%q was accepted: %v", body, err)
		}
		if err := json.Unmarshal(reply["data"], &data); err != nil || len(data) != len(got) {
			t.Fatalf("%q: %d entries, want %d, %v", body, len(got), len(data), err)
		}
		for key, a := range got {
			filled := func(name string) bool {
				var list []json.RawMessage
				_ = json.Unmarshal(data[key][name], &list)
				return len(list) > 0
			}
			cpu, disk := filled("values"), filled("disk_values") || filled("local_disk_values") || filled("nof_values")
			certain := a.State == Readable || a.State == NotReady || a.State == NotFound
			switch {
			case a.State == Readable && (a.CPU != cpu || a.Disk != disk || !cpu && !disk || string(data[key]["ok"]) != "true"),
				a.State != Readable && (a.CPU || a.Disk),
				a.State != Readable && certain && (cpu || disk || string(data[key]["ok"]) != "false"),
				certain != (a.Reason == ""):
				t.Fatalf("%q: %q is %+v", body, key, a)
			}
		}
	})
}
