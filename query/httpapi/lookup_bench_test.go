package httpapi_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

var (
	benchEvents  = flag.Int("lookup.events", 400_000, "events behind BenchmarkLookup")
	benchObjects = flag.Int("lookup.objects", 40_000, "live objects that they grow to")
)

// cpuSeconds is what this process took of the processors.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// benchKeys fills a directory with a cache's life and returns its engine and the keys of live objects.
func benchKeys(b *testing.B) (*query.Engine, []string) {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	w, err := service.OpenForWriting(b.Context(), b.TempDir(), "bench", service.Options{})
	must(err)
	b.Cleanup(func() { w.Close() })
	s, err := w.Journal.EnsureSource("bench", nil, nil)
	must(err)
	feed, err := recorder.NewFeed(w.Journal, s.ID)
	must(err)
	t := mooncaketest.NewTraffic(mooncaketest.StoreOptions{Seed: 1, Objects: *benchObjects}, 64, 1_795_985_000_000)
	g := w.Journal.NewGroup()
	for made := 0; made < *benchEvents || t.Rest() > 0; made += 64 {
		n := 64
		if made >= *benchEvents {
			n = min(n, t.Rest())
		}
		frames, ms := t.NextOf(n)
		_, err := feed.Add(g, &capture.Record{Kind: capture.Message, Received: ms * 1e6, Frames: capture.CopyFrames(nil, frames[:])}, false)
		must(err)
		if g.Raw() >= 1<<20 {
			feed.Save(g)
			must(g.Commit())
			g = w.Journal.NewGroup()
		}
	}
	feed.Save(g)
	must(g.Commit())
	must(w.Journal.Sync())
	must(w.Finish(b.Context()))
	var keys []string
	for o := range t.Objects() {
		if o.Tenant == event.DefaultTenant {
			keys = append(keys, o.Key)
		}
	}
	slices.Sort(keys)
	return &query.Engine{Journal: w.Journal, Index: w.Index}, keys
}

// raw is a connection that is kept alive and spares what it can: its own cost is in the figures.
type raw struct {
	c  net.Conn
	in *bufio.Reader
}

// ask sends a request and reads its answer, of which it returns the size.
func (r *raw) ask(b *testing.B, request []byte) int64 {
	b.Helper()
	if _, err := r.c.Write(request); err != nil {
		b.Fatal(err)
	}
	resp, err := http.ReadResponse(r.in, nil)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
	return n
}

// BenchmarkLookup asks over loopback TCP, on one connection, for objects at random: one, 1,000 as lines, 1,000 as an array, and the same
// compressed. It reports the processor's time, asker included, the median of the wall's, and the size of the answer.
func BenchmarkLookup(b *testing.B) {
	e, keys := benchKeys(b)
	log := slog.New(slog.DiscardHandler)
	server := httpapi.NewServer(log)
	defer server.End()
	listen := httpapi.Listen{Address: "127.0.0.1:0"}
	at, err := listen.Start(server, &source{engine: e}, log)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	some := func() string { return keys[rng.IntN(len(keys))] }
	post := func(begin, between, end, header string) func() []byte {
		return func() []byte {
			var body bytes.Buffer
			body.WriteString(begin)
			for i := range 1000 {
				if i > 0 {
					body.WriteString(between)
				}
				fmt.Fprintf(&body, `{"tenant_id":"default","object_key":%q}`, some())
			}
			body.WriteString(end)
			return fmt.Appendf(nil, "POST /v1/lookup HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", header, body.Len(), body.Bytes())
		}
	}
	for _, c := range []struct {
		name    string
		request func() []byte
	}{
		{"get", func() []byte {
			return fmt.Appendf(nil, "GET /v1/lookup?object_key=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", url.QueryEscape(some()))
		}},
		{"lines", post("", "\n", "\n", "")},
		{"array", post("[", ",", "]", "")},
		{"gzip", post("", "\n", "\n", "Accept-Encoding: gzip\r\n")},
		{"zstd", post("", "\n", "\n", "Accept-Encoding: zstd\r\n")},
	} {
		b.Run(c.name, func(b *testing.B) {
			conn, err := net.Dial("tcp", at.String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			r := &raw{conn, bufio.NewReaderSize(conn, 64<<10)}
			requests := make([][]byte, 40)
			for i := range requests {
				requests[i] = c.request()
				r.ask(b, requests[i])
			}
			b.ReportAllocs()
			var took []time.Duration
			size, begun := int64(0), cpuSeconds()
			for i := 0; b.Loop(); i++ {
				before := time.Now()
				size = r.ask(b, requests[i%len(requests)])
				took = append(took, time.Since(before))
			}
			b.ReportMetric((cpuSeconds()-begun)*1e6/float64(len(took)), "cpu-us/op")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(size), "B-answer")
		})
	}
}
