package mooncaketest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
)

// AdminOptions configures an Admin. The zero value answers at once and without faults, as a master of today's main line.
type AdminOptions struct {
	// Latency is how long each request takes, on top of the work. Of a listing or a query of many keys it is spread over
	// the walk, so that the store changes under it.
	Latency time.Duration

	// Errors is the probability, 0 to 1, with which a request ends in a Fault, each kind as likely as the others.
	Errors float64
	// Seed selects which requests.
	Seed uint64

	// OldStatus names the fourth counter skipped_unparsed_keys, as masters of August 2026 do.
	OldStatus bool

	// NoPublisher says "enabled":false, with all counters 0: the publisher was not built in, or could not bind its port.
	// What the Sim's publisher sends is not touched.
	NoPublisher bool

	// View is the view_version that health tells; 0 tells null, as a master without a group does.
	View uint64

	// OnStep, if set, is called at each Step of each request, by the goroutine that answers it. No lock is held: it may
	// change the Sim, restart it, or block.
	OnStep func(Step)

	// Sleep waits for Latency; nil means on the real clock. It returns early when ctx is done.
	Sleep func(ctx context.Context, d time.Duration)
}

// Stage says how far a request has come.
type Stage int

const (
	Begun Stage = iota // nothing has been read
	Read               // of a walk: N shards or keys have been read, and there are more
	Ready              // all has been read, nothing sent
)

// Step is a moment of a request between two looks at the store.
type Step struct {
	Path  string // as /get_all_keys
	Query string // raw, as keys=a,b
	Stage Stage
	N     int // shards of a listing, keys of a query that have been read
}

// Fault is how a request fails.
type Fault int

const (
	Error500 Fault = iota // status 500 and a text
	Hang                  // no answer until the client gives up, or the server is closed
	Cut                   // half of the body that Content-Length promises, then the connection ends
	Reset                 // the connection ends without an answer
	faults
)

// Admin is the admin HTTP API of the master that a Sim is, as recorded in spec/master-admin.md. It is safe for use by
// several goroutines at once. Each request sees the process that it began with: if the Sim restarts before the answer is
// complete, the connection ends without one, as with a process that was killed.
type Admin struct {
	sim *Sim

	mu     sync.Mutex
	o      AdminOptions
	random random
	failed map[string][]Fault // by path, "" for all; the next requests
}

// NewAdmin serves sim's state. Several may serve the same one.
func NewAdmin(sim *Sim, o AdminOptions) *Admin {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	sim.openDirectory()
	return &Admin{sim: sim, o: o, random: newRandom(o.Seed ^ adminStream), failed: map[string][]Fault{}}
}

const adminStream = 0x61646d696e

// Set changes the options for the requests that begin from now on. Seed is not looked at again.
func (a *Admin) Set(change func(*AdminOptions)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.o)
}

// Fail makes the next requests of a path fail, one with each fault, whatever AdminOptions.Errors says. Path "" is any.
func (a *Admin) Fail(path string, faults ...Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed[path] = append(a.failed[path], faults...)
}

// fate decides, when a request begins, whether and how it fails, and with what options it is answered.
func (a *Admin) fate(path string) (AdminOptions, Fault, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range [...]string{path, ""} {
		if next := a.failed[p]; len(next) > 0 {
			a.failed[p] = next[1:]
			return a.o, next[0], true
		}
	}
	if a.o.Errors > 0 && a.random.chance(a.o.Errors) {
		return a.o, Fault(a.random.below(int(faults))), true
	}
	return a.o, 0, false
}

// request is one that is being answered.
type request struct {
	sim  *Sim
	o    AdminOptions
	http *http.Request

	// process is the store that was there when the request, or its connection, began: another one is another process.
	process *Store
}

// ServeHTTP answers one request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{sim: a.sim, http: r, process: processOf(r.Context())}
	if q.process == nil {
		a.sim.View(func(s *Store, _ *Publisher) { q.process = s })
	}
	q.checkAlive()
	var fault Fault
	var fails bool
	q.o, fault, fails = a.fate(r.URL.Path)
	q.step(Begun, 0)
	if fails && fault != Cut {
		q.fail(w, fault)
		return
	}
	q.answer().write(w, fails)
}

// fail answers with a fault other than Cut.
func (q *request) fail(w http.ResponseWriter, f Fault) {
	switch f {
	case Error500:
		q.pause(0, 1)
		text(http.StatusInternalServerError, "500 Internal Server Error").write(w, false)
	case Hang:
		<-q.http.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// answer makes the reply. It does not return if the process dies meanwhile.
func (q *request) answer() reply {
	var out reply
	var walks bool
	switch path := q.http.URL.Path; {
	case q.http.Method != http.MethodGet:
		out = notFound
	case path == "/health":
		out = q.health()
	case path == "/role":
		out = q.role()
	case path != "/kv_events/status" && path != "/get_all_keys" && path != "/batch_query_keys" && path != "/get_segments_detail":
		out = notFound
	case q.isStandby():
		out = jsonReply(http.StatusServiceUnavailable, []byte(standbyBody))
	case path == "/kv_events/status":
		out = q.status()
	case path == "/get_all_keys":
		out, walks = q.listing(), true
	case path == "/batch_query_keys":
		out, walks = q.query()
	default:
		out = q.segments()
	}
	if !walks {
		q.pause(0, 1)
	}
	q.step(Ready, 0)
	q.checkAlive()
	return out
}

// view reads the state of the process that the request began with.
func (q *request) view(f func(*Store, *Publisher)) {
	q.sim.mu.RLock()
	defer q.sim.mu.RUnlock()
	if q.sim.down || q.sim.store != q.process {
		panic(http.ErrAbortHandler)
	}
	f(q.sim.store, q.sim.publisher)
}

// checkAlive ends a request to a dead process: that sends nothing.
func (q *request) checkAlive() { q.view(func(*Store, *Publisher) {}) }

func (q *request) isStandby() (standby bool) {
	q.view(func(*Store, *Publisher) { standby = q.sim.isStandby() })
	return standby
}

func (q *request) step(stage Stage, n int) {
	if q.o.OnStep != nil {
		q.o.OnStep(Step{Path: q.http.URL.Path, Query: q.http.URL.RawQuery, Stage: stage, N: n})
	}
}

// pauses is into how many parts the latency of a walk is cut.
const pauses = 8

// pause waits, behind the i-th of n things that are read, for its share of the latency: all shares together are Latency.
func (q *request) pause(i, n int) {
	share := q.o.Latency / pauses * time.Duration((i+1)*pauses/n-i*pauses/n)
	if share <= 0 {
		return
	}
	if q.o.Sleep != nil {
		q.o.Sleep(q.http.Context(), share)
	} else {
		_ = pause.For(q.http.Context(), share)
	}
	if q.http.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
}

// atOnce is how many things a walk reads under one lock where nobody looks between them. A real master has a lock for each shard; here
// there is one for all, and taking it for every key of a query took 40 times the query under 50,000 events/s.
const atOnce = 64

// walk reads n things one by one, with all locks free between two of them, or between some of them.
func (q *request) walk(n int, read func(i int, s *Store)) {
	run := 1
	if q.o.OnStep == nil && q.o.Latency == 0 {
		run = atOnce
	}
	for first := 0; first < n; first += run {
		q.view(func(s *Store, _ *Publisher) {
			for i := first; i < min(first+run, n); i++ {
				read(i, s)
			}
		})
		if run > 1 {
			continue
		}
		q.pause(first, n)
		if first < n-1 {
			q.step(Read, first+1)
		}
	}
}

// String names a fault.
func (f Fault) String() string {
	switch f {
	case Error500:
		return "500"
	case Hang:
		return "hang"
	case Cut:
		return "cut"
	case Reset:
		return "reset"
	}
	return fmt.Sprintf("Fault(%d)", int(f))
}
