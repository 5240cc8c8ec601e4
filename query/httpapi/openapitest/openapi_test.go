package openapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(httpapi.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Every route is in the document, and what is in the document is a route.
func TestRoutes(t *testing.T) {
	doc := document(t)
	routes := map[string]bool{}
	for _, r := range httpapi.Routes() {
		routes[r.Method+" "+r.Path] = true
		item := doc.Paths.Find(r.Path)
		if item == nil || item.GetOperation(r.Method) == nil {
			t.Errorf("%s %s is not in the document", r.Method, r.Path)
			continue
		}
		security := item.GetOperation(r.Method).Security
		if open := security != nil && len(*security) == 0; open != (r.Right == httpapi.Open) {
			t.Errorf("%s %s: the document says security %v, it needs %v", r.Method, r.Path, security, r.Right)
		}
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if !routes[method+" "+path] {
				t.Errorf("%s %s is in the document alone", method, path)
			}
		}
	}
}

// asker asks a service, and holds what it answers against the document.
type asker struct {
	doc  *openapi3.T
	base string
	seen map[string]int // lines that fit, by the operation
}

const patience = 3 * time.Minute

// ask returns the lines of an answer, each of which fits its schema.
func (a *asker) ask(t *testing.T, method, path string, params url.Values, body, kind string, status int) []string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.base+path+"?"+params.Encode(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	what := method + " " + path + "?" + params.Encode()
	if resp.StatusCode != status {
		t.Errorf("%s: %d, want %d: %.300s", what, resp.StatusCode, status, b)
		return nil
	}
	op := a.doc.Paths.Find(path).GetOperation(method)
	a.documented(t, op, what, params)
	declared := op.Responses.Status(status)
	if declared == nil {
		declared = op.Responses.Default()
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	content := declared.Value.Content.Get(media)
	if content == nil {
		t.Errorf("%s: answered as %s, which the document does not say", what, media)
		return nil
	}
	lines := []string{string(b)}
	if media == "application/x-ndjson" {
		lines = strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if len(b) == 0 {
			lines = nil
		}
	}
	if strings.HasSuffix(media, "json") {
		for _, line := range lines {
			fits(t, content.Schema.Value, what, line)
		}
	}
	a.seen[op.OperationID] += len(lines)
	return lines
}

// documented fails the test unless every parameter is in the document.
func (a *asker) documented(t *testing.T, op *openapi3.Operation, what string, params url.Values) {
	t.Helper()
	for name := range params {
		if op.Parameters.GetByInAndName("query", name) == nil {
			t.Errorf("%s: the document has no parameter %s", what, name)
		}
	}
}

func fits(t *testing.T, schema *openapi3.Schema, what, line string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("%s: %v: %.200s", what, err, line)
		return
	}
	if err := schema.VisitJSON(v); err != nil {
		t.Errorf("%s: %.700s does not fit: %.600v", what, line, err)
	}
}

// started is a recorder beside a master that restarts and drops, with all that there is to tell of. quiet ends the master's changes, so
// that no more comes while it is asked.
func started(t *testing.T) (a *asker, quiet func()) {
	t.Helper()
	sim, err := mooncaketest.NewSim(mooncaketest.SimOptions{
		Publisher: mooncaketest.Options{QueueCapacity: 300, Linger: time.Second},
		Store:     mooncaketest.StoreOptions{Seed: 7, Tenants: 3, Objects: 300, ClearEvery: 800, RacyClears: true, OddKeys: 5},
		Rate:      500, Duration: 10 * patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := mooncaketest.NewAdmin(sim, mooncaketest.AdminOptions{}).Serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close() })
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-the-test"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s, err := service.Record(ctx, service.Config{
		Dir: filepath.Join(t.TempDir(), "data"), Sources: []service.SourceConfig{{Name: "s", Endpoints: []string{sim.Endpoint()}, Masters: []string{admin.URL()}}},
		Log: slog.New(slog.DiscardHandler), Listen: httpapi.Listen{Address: "127.0.0.1:0", ReconcileTokenFile: token},
	})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	changing, quiet := context.WithCancel(ctx)
	simulated := make(chan error, 1)
	go func() { simulated <- sim.Run(changing) }()
	t.Cleanup(func() {
		quiet()
		stop()
		<-simulated
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	})
	a = &asker{doc: document(t), base: "http://" + s.Address().String(), seen: map[string]int{}}
	a.await(t, func(s *query.SourceOut) bool { return s.Events > 600 })
	flood := make([]mooncaketest.Change, 2000) // more than the publisher's queue holds
	for i := range flood {
		flood[i] = mooncaketest.Change{Type: event.Stored, Tenant: "default", Medium: mooncaketest.CPU, Key: fmt.Sprintf("flood-%d", i)}
	}
	if err := sim.Do(flood...); err != nil {
		t.Fatal(err)
	}
	a.await(t, func(s *query.SourceOut) bool { return s.Gaps > 0 })
	for epoch := range uint64(2) {
		// As a standby it sends nothing before the connection has come back: what it sent would hide that it is another process.
		broken := a.breaks(t)
		sim.SetStandby(true)
		if err := sim.Restart(); err != nil {
			t.Fatal(err)
		}
		a.await(t, func(s *query.SourceOut) bool { return s.Connected && a.breaks(t) > broken })
		sim.SetStandby(false)
		a.await(t, func(s *query.SourceOut) bool { return s.Epoch > epoch+1 && s.Seq > 200 })
	}
	a.await(t, func(s *query.SourceOut) bool { return s.Readings > 0 && s.Events > 2000 })
	return a, quiet
}

// stats are the figures of the moment.
func (a *asker) stats(t *testing.T) (st query.StatsOut, err error) {
	t.Helper()
	resp, err := http.Get(a.base + "/v1/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return st, json.NewDecoder(resp.Body).Decode(&st)
}

// breaks is how many connections of the one socket broke.
func (a *asker) breaks(t *testing.T) uint64 {
	t.Helper()
	st, err := a.stats(t)
	if err != nil || st.Recorder == nil || len(st.Recorder.Sockets) != 1 {
		t.Fatalf("%v: %+v", err, st)
	}
	return st.Recorder.Sockets[0].Disconnects
}

// await asks until the source stands as it should.
func (a *asker) await(t *testing.T, ok func(*query.SourceOut) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		st, err := a.stats(t)
		if err == nil && len(st.Sources) == 1 && ok(&st.Sources[0]) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing to tell of within %v: %+v", patience, st)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestAnswers asks everything, with every kind of parameter, and holds each line against the document.
func TestAnswers(t *testing.T) {
	a, quiet := started(t)
	a.reconciles(t)
	quiet()
	get := func(path, params string, status int) []string {
		t.Helper()
		v, err := url.ParseQuery(params)
		if err != nil {
			t.Fatal(err)
		}
		return a.ask(t, "GET", path, v, "", "", status)
	}
	var key string
	for _, line := range get("/v1/objects", "state=any&limit=300", 200) {
		var o query.ObjectOut
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		name, err := json.Marshal(&query.Question{Name: o.Name})
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]string
		if err := json.Unmarshal(name, &fields); err != nil {
			t.Fatal(err)
		}
		v := url.Values{}
		for n, value := range fields {
			v.Set(n, value)
		}
		key = v.Encode()
		if len(a.seen) > 0 && a.seen["lookup"] < 60 {
			get("/v1/lookup", key, 200)
			get("/v1/why", key, 200)
			get("/v1/why", key+"&at=offset:20", 200)
			get("/v1/history", key+"&notes=true", 200)
		}
	}
	get("/v1/history", key+"&raw=true&limit=5", 200)
	for _, params := range []string{"at=-1s", "at=offset:30&state=any", "count=true", "certainty=uncertain&medium=disk", "page=7", "state=absent&limit=3", "prefix=a"} {
		get("/v1/objects", params, 200)
	}
	for _, params := range []string{"", "summary=true", "no_objects=true", "from=offset:10&to=offset:200", "progress=true"} {
		get("/v1/gaps", params, 200)
	}
	for _, params := range []string{"limit=3000", "raw=true&limit=200", "type=gap", "type=fact", "page=5", "to=offset:100&positions=true", "tenant_id=tenant-1&limit=20", "after=30/2&to=offset:50"} {
		get("/v1/log", params, 200)
	}
	for _, params := range []string{"from=offset:10&to=offset:300", "from=offset:10&to=offset:300&summary=after&progress=true", "from=offset:10&to=offset:300&summary=true"} {
		get("/v1/diff", params, 200)
	}
	for _, params := range []string{"", "by=group", "by=none&doubtful=true&top=5"} {
		get("/v1/lifetimes", params, 200)
	}
	for _, params := range []string{"", "bucket=100ms", "type=stored&medium=cpu"} {
		get("/v1/activity", params, 200)
	}
	get("/v1/export", "to=offset:100", 200)
	get("/v1/export", "format=ndjson&to=offset:300", 200)
	get("/v1/horizon", "", 200)
	get("/v1/stats", "", 200)
	get("/healthz", "", 200)
	get("/metrics", "", 200)
	get("/openapi.yaml", "", 200)
	a.ask(t, "POST", "/v1/lookup", url.Values{"at": {"offset:50"}}, `{"object_key":"k"}`+"\n"+`{"object_key_base64":"/w=="}`, "application/x-ndjson", 200)
	a.ask(t, "POST", "/v1/lookup", nil, `[{"object_key":"k"},{"tenant_id":"tenant-1","object_key":"k"}]`, "application/json", 200)
	for _, name := range []string{"objects", "gaps", "log", "why", "history", "diff", "lifetimes", "activity", "export", "horizon"} {
		body := "from=offset:10&to=offset:30"
		switch name {
		case "objects":
			body = "at=offset:30"
		case "why":
			body = "object_key=k&at=offset:30"
		case "horizon":
			body = ""
		case "gaps": // of which nothing may lie there
			body = "no_objects=true"
		case "log":
			body = "limit=50"
		case "history":
			body = key
		}
		a.ask(t, "POST", "/v1/"+name, nil, body, "application/x-www-form-urlencoded", 200)
	}
	a.parameters(t)
	for params, path := range map[string]string{"source=nobody": "/v1/gaps", "at=soon": "/v1/lookup", "limit=x": "/v1/log"} {
		get(path, params, 400)
	}
	for _, name := range []string{"prune", "backup", "rebuild"} {
		a.ask(t, "POST", "/v1/"+name, nil, "", "", 403)
	}
	a.ask(t, "POST", "/v1/reconcile", nil, "", "", 401)
	for _, item := range a.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if id := op.OperationID; a.seen[id] == 0 && id != "readyz" && id != "horizon" && id != "horizonLong" {
				t.Errorf("%s: nothing was held against the document", id)
			}
		}
	}
	t.Log(fmt.Sprint(a.seen))
}

// parameters fails the test unless each question has the very parameters that the document has: one that it does not know it refuses, and tells
// those that it does.
func (a *asker) parameters(t *testing.T) {
	t.Helper()
	for path, item := range a.doc.Paths.Map() {
		for method, op := range item.Operations() {
			if !strings.HasPrefix(path, "/v1/") || method == "POST" && path != "/v1/lookup" {
				continue
			}
			req, err := http.NewRequestWithContext(t.Context(), method, a.base+path+"?surplus=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			var p httpapi.Problem
			err = json.NewDecoder(resp.Body).Decode(&p)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 400 {
				t.Fatalf("%s %s: %s, %v", method, path, resp.Status, err)
			}
			_, list, _ := strings.Cut(p.Detail, "; there are ")
			known := map[string]bool{}
			if list != "none" {
				for name := range strings.SplitSeq(list, ", ") {
					known[name] = true
				}
			}
			for _, parameter := range op.Parameters {
				if name := parameter.Value.Name; parameter.Value.In == "query" && !known[name] {
					t.Errorf("%s %s: %s is in the document alone", method, path, name)
				} else {
					delete(known, name)
				}
			}
			if len(known) > 0 {
				t.Errorf("%s %s: the document does not have %v", method, path, known)
			}
		}
	}
}

// reconciles has the master read, with the token.
func (a *asker) reconciles(t *testing.T) {
	t.Helper()
	schema := a.doc.Paths.Find("/v1/reconcile").Post.Responses.Status(200).Value.Content.Get("application/x-ndjson").Schema.Value
	req, err := http.NewRequestWithContext(t.Context(), "POST", a.base+"/v1/reconcile?dry_run=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer a-token-of-the-test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s %v %s", resp.Status, err, b)
	}
	for line := range bytes.Lines(b) {
		fits(t, schema, "reconcile", string(line))
		a.seen["reconcile"]++
	}
}
