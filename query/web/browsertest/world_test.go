package browsertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
	"github.com/kvjournal/kvjournal/query/web"
)

// The sources: of a night a transport loss and a restart are known; hostile has keys that would be markup; many has manyObjects objects;
// live is a master that a test drives.
const (
	night, hostile, many, live = "night", "hostile", "many", "live"
	manyObjects                = 100_000
	lostFrom, lostTo           = 641, 720
	token                      = "a token that only this test knows"
)

// begin is the publishers' time of what is imported.
var begin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// hostileKeys are keys that a page may stumble over, and how each is shown; empty: not as a whole.
var hostileKeys = []struct{ key, shown string }{
	{`<img src=x onerror="document.title='owned'">`, `"<img src=x onerror=\"document.title='owned'\">"`},
	{`</script><script>document.title='owned'</script>`, `</script><script>document.title='owned'</script>`},
	{"gpj.\u202eexe\u202c", `"gpj.\u202eexe\u202c"`},
	{"two\nlines", `"two\nlines"`},
	{"\xff\xfe\x00k", `"\xff\xfe\x00k"`},
	{"שלום עולם", "שלום עולם"},
	{"a&b=c#d?e%41+f", "a&b=c#d?e%41+f"},
	{strings.Repeat("L", 1<<20), ""},
}

const (
	hostileTenant = "<script>document.title='owned'</script>"
	hostileMedium = "<i>dsk\u202e"
)

// world is what is recorded, and a server that tells of it.
type world struct {
	service *service.Service
	master  *mooncaketest.Sim
	server  *httptest.Server
	// guarded is the same for those with the token.
	guarded *httptest.Server
	// asked counts the questions that are being answered.
	asked atomic.Int64
	stop  context.CancelFunc
}

func newWorld(dir string) (w *world, err error) {
	ctx, stop := context.WithCancel(context.Background())
	w = &world{stop: stop}
	if err := fill(ctx, filepath.Join(dir, "data"), dir); err != nil {
		return w, err
	}
	if w.master, err = mooncaketest.NewSim(mooncaketest.SimOptions{}); err != nil {
		return w, err
	}
	w.service, err = service.Record(ctx, service.Config{
		Dir: filepath.Join(dir, "data"), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Sources: []service.SourceConfig{{Name: live, Endpoints: []string{w.master.Endpoint()}}},
	})
	if err != nil {
		return w, err
	}
	w.server = httptest.NewServer(w.handler(""))
	w.guarded = httptest.NewServer(w.handler(token))
	return w, nil
}

// handler serves page and questions; questions to those with the token, if there is one.
func (w *world) handler(token string) http.Handler {
	questions := httpapi.Handler(w.service)
	mux := http.NewServeMux()
	mux.Handle("/", web.Handler())
	mux.HandleFunc("/v1/", func(rw http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(rw, `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"send a token"}`)
			return
		}
		w.asked.Add(1)
		defer w.asked.Add(-1)
		questions.ServeHTTP(rw, r)
	})
	return mux
}

func (w *world) close() error {
	var err error
	for _, s := range []*httptest.Server{w.server, w.guarded} {
		if s != nil {
			s.CloseClientConnections()
			s.Close()
		}
	}
	w.stop()
	if w.service != nil {
		err = w.service.Wait()
	}
	if w.master != nil {
		err = errors.Join(err, w.master.Close())
	}
	return err
}

// fill imports the captures.
func fill(ctx context.Context, dir, scratch string) (err error) {
	d, err := service.OpenForWriting(ctx, dir, "browsertest", service.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for _, c := range []struct {
		source string
		write  func(*capture.FileWriter) error
	}{{night, writeNight}, {hostile, writeHostile}, {many, writeMany}} {
		path := filepath.Join(scratch, c.source+".kvcap")
		w, err := capture.Create(vfs.Default, path)
		if err != nil {
			return err
		}
		if err := errors.Join(w.Write(capture.Record{Kind: capture.Connected, Received: begin.UnixNano()}), c.write(w), w.Close()); err != nil {
			return err
		}
		if _, err := d.Import(ctx, c.source, path, recorder.ImportOptions{}); err != nil {
			return fmt.Errorf("%s: %w", c.source, err)
		}
	}
	return d.Finish(ctx)
}

// writeNight is twenty seconds of a publisher, of which some messages are lost, and ten of another process in its place.
func writeNight(w *capture.FileWriter) error {
	for i, events := range []int{20_000, 10_000} {
		at := begin.Add(time.Duration(i) * 25 * time.Second).UnixMilli()
		traffic := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: uint64(i), Tenants: 3, Objects: 600}, 4, at)
		traffic.EventsPerMS = 1
		for seq := 1; seq <= events/4; seq++ {
			frames, ms := traffic.Next()
			if i == 0 && seq >= lostFrom && seq <= lostTo {
				continue
			}
			if err := w.Write(capture.Record{Kind: capture.Message, Received: ms * 1e6, Frames: frames}); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeHostile(w *capture.FileWriter) error {
	p := publisher{w: w, encoder: event.NewEncoder(event.EncodeOptions{ObjectKey: true})}
	group := "<b>group</b>"
	for _, k := range hostileKeys {
		for _, tenant := range []string{"default", hostileTenant} {
			for _, medium := range []string{"cpu", hostileMedium} {
				if err := p.send(event.Fields{Type: event.Stored, Tenant: tenant, Medium: medium, Key: k.key, GroupID: &group}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeMany(w *capture.FileWriter) error {
	p := publisher{w: w, encoder: event.NewEncoder(event.EncodeOptions{ObjectKey: true})}
	for i := 0; i < manyObjects; {
		var batch []event.Fields
		for ; len(batch) < 64 && i < manyObjects; i++ {
			batch = append(batch, event.Fields{Type: event.Stored, Tenant: "default", Medium: "cpu", Key: fmt.Sprintf("many-%08d", i)})
		}
		if err := p.send(batch...); err != nil {
			return err
		}
	}
	return nil
}

// publisher numbers what it writes as a process does.
type publisher struct {
	w       *capture.FileWriter
	encoder *event.Encoder
	seq, id uint64
}

func (p *publisher) send(events ...event.Fields) error {
	p.seq++
	ms := begin.UnixMilli() + int64(p.seq)*10
	for i := range events {
		p.id++
		events[i].ID, events[i].Timestamp, events[i].Backend = p.id, ms, "master"
	}
	seq := event.SeqFrame(p.seq)
	payload := p.encoder.AppendPayload(nil, ms, events, 0)
	return p.w.Write(capture.Record{Kind: capture.Message, Received: ms * 1e6, Frames: [][]byte{{}, seq[:], payload}})
}
