package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

const (
	// clearEvery is how far apart remove-alls are at least, in time at the given rate.
	clearEvery = 4 * time.Second
	// flatOutRate is what --rate 0 asks for, events/s. The real publisher at full speed, with one subscriber on the same
	// two cores, sends 510,000 to 600,000 (measured, DESIGN.md); a stand-in that is faster than that would not be faithful. This one
	// can be: --rate 900000.
	flatOutRate = 620_000
)

const usage = `mooncakesim simulates a Mooncake Store master, for tests and demos of kvjournal: the stream of its KV events, and on
request its admin API.

It keeps a store of objects that live as in a cache (put, offload to disk, eviction from memory, removal, upsert, now
and then a remove-all of the last tenant) and announces each change on a ZMQ PUB socket, with the queue, the numbering
and the losses of the real publisher. Ctrl-C ends it; the last line, on stdout, is its counters as JSON.

  mooncakesim --rate 1000                                    a calm master
  mooncakesim --rate 0 --duration 10s                        a master at full speed
  mooncakesim --queue-capacity 256 --burst 5000              losses in the queue, every 5 s
  mooncakesim --restart-every 20s --truth truth.jsonl.zst    restarts, and what was true
  mooncakesim --admin 127.0.0.1:9003 --silent-removals 5     a master that can be asked, and does not tell all
  mooncakesim --capture day.kvcap.zst --events 1000000       no socket: a file for kvjournal import
  mooncakesim --capture loss.kvcap.zst --lose 700-760        the same, and a network that lost some of it
`

// flags are the command's flags.
type flags struct {
	bind          string
	backendID     string
	legacy        bool
	objectKey     bool
	queueCapacity int

	rate       float64
	burst      int
	duration   time.Duration
	seed       uint64
	tenants    int
	objects    int
	racyClears bool
	oddKeys    int

	restartEvery     time.Duration
	queueDelay       time.Duration
	tailLoss         float64
	silentRemovals   float64
	segmentLossEvery time.Duration
	standby          time.Duration

	admin        string
	oldStatus    bool
	statusLag    time.Duration
	adminLatency time.Duration
	adminErrors  float64
	pendingPuts  int

	truth      string
	quietEvery time.Duration
	quietFor   time.Duration

	capture string
	events  int
	batch   int
	lose    string
}

// section is a part of the help.
type section struct {
	title string
	set   *pflag.FlagSet
}

// parse reads the command line. It prints the usage to help, and returns pflag.ErrHelp, if the line asks for it.
func parse(args []string, help io.Writer) (*flags, error) {
	f := &flags{}
	sections := f.sections()
	set := pflag.NewFlagSet("mooncakesim", pflag.ContinueOnError)
	set.SetOutput(help)
	set.Usage = func() {
		fmt.Fprint(help, usage)
		for _, s := range sections {
			fmt.Fprint(help, "\n", s.title, ":\n", s.set.FlagUsagesWrapped(100))
		}
	}
	for _, s := range sections {
		set.AddFlagSet(s.set)
	}
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: everything is a flag", set.Arg(0))
	}
	return f, f.check()
}

// sections defines the flags, in the order of the help.
func (f *flags) sections() (all []section) {
	var set *pflag.FlagSet
	begin := func(title string) {
		set = pflag.NewFlagSet(title, pflag.ContinueOnError)
		set.SortFlags = false
		all = append(all, section{title, set})
	}

	begin("Publisher")
	set.StringVar(&f.bind, "bind", "tcp://127.0.0.1:5557", "ZMQ `endpoint` to bind; tcp://127.0.0.1:* takes a free port and prints it")
	set.StringVar(&f.backendID, "backend-id", mooncaketest.DefaultBackendID, "backend_id of all events")
	set.BoolVar(&f.legacy, "legacy", true, "send the legacy fields too (type, block_hashes, parent_block_hash)")
	set.BoolVar(&f.objectKey, "object-key", true, "send object keys; with =false stored and removed are suppressed, as by the real publisher, and only cleared is sent")
	set.IntVar(&f.queueCapacity, "queue-capacity", mooncaketest.DefaultQueueCapacity, "most `events` that wait for the sender; beyond it the oldest are dropped, and leave a gap in seq")

	begin("Traffic")
	set.Float64Var(&f.rate, "rate", 1000, "`events` per second, spread evenly; 0 = flat out: as the real publisher at full speed, 620,000 or what this machine can (more: give a number)")
	set.IntVar(&f.burst, "burst", 0, "`events` that come at once every 5 s, on top of the rate; 0 = none. About twice the queue capacity or more overflows it")
	set.DurationVar(&f.duration, "duration", 0, "end after this `time`, as 30s or 5m; 0 = at Ctrl-C")
	set.Uint64Var(&f.seed, "seed", 1, "`number` that selects the sequence of changes: the same flags and seed give the same one")
	set.IntVar(&f.tenants, "tenants", 3, "`number` of tenants: default, tenant-1, tenant-2, … The last of several is small and is the one that remove-alls empty")
	set.IntVar(&f.objects, "objects", 100_000, "`number` of live objects, over all tenants, that the store grows to and then keeps")
	set.BoolVar(&f.racyClears, "racy-clears", false, "store some objects between a remove-all's last removed and its cleared; they live on, as on some real masters")
	set.IntVar(&f.oddKeys, "odd-keys", 0, "make one new key in this `number` an odd one: with a comma, a newline, %, +, &, a NUL, beyond ASCII, or no valid UTF-8; 0 = none")

	begin("Harm")
	set.DurationVar(&f.restartEvery, "restart-every", 0, "kill the publisher each time this `time` has passed and start a new one on the same port: an empty store, seq and event_id from 1; 0 = never")
	set.DurationVar(&f.queueDelay, "queue-delay", 0, "let events rest in the queue for this `time` before they are sent: the store is ahead of the stream")
	set.Float64Var(&f.tailLoss, "tail-loss", 0, "`probability` with which a quiet moment begins with a loss: the last messages are counted and never reach the wire, which nothing shows before the next one. Makes quiet moments without --truth too")
	set.Float64Var(&f.silentRemovals, "silent-removals", 0, "`objects` per second that are removed without an event, some of them from memory only")
	set.DurationVar(&f.segmentLossEvery, "segment-loss-every", 0, "unmount a segment each time this `time` has passed, without an event for what was in it, and mount one with another id; 0 = never")
	set.DurationVar(&f.standby, "standby", 0, "begin as a standby, after each restart too, and become the leader after this `time`: until then no changes, and 503 from the admin API")

	begin("Admin API")
	set.StringVar(&f.admin, "admin", "", "serve the master's admin API on this `address`, as 127.0.0.1:9003; port 0 takes a free one and prints it. The flags below need it")
	set.BoolVar(&f.oldStatus, "old-status", false, "name the status' fourth counter skipped_unparsed_keys, as masters before skipped_keyless_events")
	set.DurationVar(&f.statusLag, "status-lag", 0, "leave the newest message out of the status' counters until this `time` after it was sent, or until the next one is: polls are one message behind the stream")
	set.DurationVar(&f.adminLatency, "admin-latency", 0, "`time` that each request takes on top of the work; a listing's is spread over its walk")
	set.Float64Var(&f.adminErrors, "admin-errors", 0, "`probability` with which a request fails: status 500, no answer at all, half a body, or the end of the connection")
	set.IntVar(&f.pendingPuts, "pending-puts", 8, "`number` of puts that have begun and not ended at any time: listed, and REPLICA_IS_NOT_READY")

	begin("Truth")
	set.StringVar(&f.truth, "truth", "", "write the true state to this `file` (JSON lines; compressed if it ends in .zst): at each quiet moment a line is written and flushed once the queue is empty, and one more at the end")
	set.DurationVar(&f.quietEvery, "quiet-every", 3*time.Second, "`time` between two quiet moments")
	set.DurationVar(&f.quietFor, "quiet-for", 400*time.Millisecond, "`time` that changes stop for a quiet moment")

	begin("Capture")
	set.StringVar(&f.capture, "capture", "", "open no socket; write what would be received to this .kvcap or .kvcap.zst `file`, --events of them")
	set.IntVar(&f.events, "events", 1_000_000, "`number` of events of a --capture")
	set.IntVar(&f.batch, "batch", mooncaketest.BatchEvents, "`events` a message of a --capture, 1 to 64")
	set.StringVar(&f.lose, "lose", "", "leave the messages with the seqs `FROM-TO` out of a --capture, as a network does that loses them")
	return all
}

// check names every flag that makes no sense.
func (f *flags) check() error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(strings.Contains(f.bind, "://"), "--bind %q: want an endpoint as tcp://127.0.0.1:5557", f.bind)
	must(f.rate >= 0 && !math.IsInf(f.rate, 0), "--rate %v: must be 0 (flat out) or more", f.rate)
	must(f.duration >= 0, "--duration %v: must not be negative", f.duration)
	must(f.tenants >= 1, "--tenants %d: must be at least 1", f.tenants)
	must(f.objects >= 1, "--objects %d: must be at least 1", f.objects)
	must(f.queueCapacity >= 1, "--queue-capacity %d: must be at least 1", f.queueCapacity)
	must(f.burst >= 0, "--burst %d: must not be negative", f.burst)
	must(f.restartEvery >= 0, "--restart-every %v: must not be negative", f.restartEvery)
	must(f.oddKeys >= 0, "--odd-keys %d: must not be negative", f.oddKeys)
	must(f.queueDelay >= 0, "--queue-delay %v: must not be negative", f.queueDelay)
	must(f.tailLoss >= 0 && f.tailLoss <= 1, "--tail-loss %v: must be 0 to 1", f.tailLoss)
	must(f.silentRemovals >= 0 && !math.IsInf(f.silentRemovals, 0), "--silent-removals %v: must not be negative", f.silentRemovals)
	must(f.segmentLossEvery >= 0, "--segment-loss-every %v: must not be negative", f.segmentLossEvery)
	must(f.standby >= 0, "--standby %v: must not be negative", f.standby)
	must(f.statusLag >= 0, "--status-lag %v: must not be negative", f.statusLag)
	must(f.adminLatency >= 0, "--admin-latency %v: must not be negative", f.adminLatency)
	must(f.adminErrors >= 0 && f.adminErrors <= 1, "--admin-errors %v: must be 0 to 1", f.adminErrors)
	must(f.pendingPuts >= 0, "--pending-puts %d: must not be negative", f.pendingPuts)
	must(f.quietFor > 0 && f.quietFor < f.quietEvery, "--quiet-for %v: must be above 0 and below --quiet-every, %v", f.quietFor, f.quietEvery)
	must(!f.oldStatus || f.admin != "", "--old-status: needs --admin")
	must(f.statusLag == 0 || f.admin != "", "--status-lag: needs --admin")
	must(f.adminLatency == 0 || f.admin != "", "--admin-latency: needs --admin")
	must(f.adminErrors == 0 || f.admin != "", "--admin-errors: needs --admin")
	must(f.admin == "" || f.capture == "", "--admin: a --capture opens no socket")
	must(f.events >= 1, "--events %d: must be at least 1", f.events)
	must(f.batch >= 1 && f.batch <= mooncaketest.BatchEvents, "--batch %d: must be 1 to %d", f.batch, mooncaketest.BatchEvents)
	must(f.lose == "" || f.capture != "", "--lose: needs --capture")
	if _, _, err := f.lost(); err != nil {
		errs = append(errs, err)
	}
	must(f.backendID != "", "--backend-id: must not be empty")
	return errors.Join(errs...)
}

func (f *flags) options() mooncaketest.SimOptions {
	rate := f.rate
	if rate == 0 {
		rate = flatOutRate
	}
	pending := 0
	if f.admin != "" {
		pending = f.pendingPuts
	}
	return mooncaketest.SimOptions{
		Publisher: mooncaketest.Options{
			Bind:          f.bind,
			QueueCapacity: f.queueCapacity,
			NoLegacy:      !f.legacy,
			NoObjectKey:   !f.objectKey,
			BackendID:     f.backendID,
			QueueDelay:    f.queueDelay,
			StatusLag:     f.statusLag,
		},
		Store: mooncaketest.StoreOptions{
			Seed:       f.seed,
			Tenants:    f.tenants,
			Objects:    f.objects,
			ClearEvery: max(100, int(rate*clearEvery.Seconds())),
			RacyClears: f.racyClears,

			PendingPuts: pending,
			OddKeys:     f.oddKeys,
		},
		Rate:             rate,
		Duration:         f.duration,
		Burst:            f.burst,
		RestartEvery:     f.restartEvery,
		QuietEvery:       f.quietEvery,
		QuietFor:         f.quietFor,
		TailLoss:         f.tailLoss,
		SilentRemovals:   f.silentRemovals,
		SegmentLossEvery: f.segmentLossEvery,
		Standby:          f.standby,
	}
}

func (f *flags) adminOptions() mooncaketest.AdminOptions {
	return mooncaketest.AdminOptions{Latency: f.adminLatency, Errors: f.adminErrors, Seed: f.seed, OldStatus: f.oldStatus}
}

// String says in one line what the flags ask for.
func (f *flags) String() string {
	var b strings.Builder
	if f.rate == 0 {
		b.WriteString("flat out")
	} else {
		fmt.Fprintf(&b, "%v events/s", f.rate)
	}
	fmt.Fprintf(&b, ", %d objects, %d tenants, queue of %d, seed %d, backend %s", f.objects, f.tenants, f.queueCapacity, f.seed, f.backendID)
	if f.burst > 0 {
		fmt.Fprintf(&b, ", %d more every 5 s", f.burst)
	}
	if f.restartEvery > 0 {
		fmt.Fprintf(&b, ", a restart every %v", f.restartEvery)
	}
	if !f.legacy {
		b.WriteString(", no legacy fields")
	}
	if !f.objectKey {
		b.WriteString(", no object keys")
	}
	if f.racyClears {
		b.WriteString(", racy clears")
	}
	f.describeHarm(&b)
	if f.truth != "" {
		b.WriteString(", truth in " + f.truth)
	}
	if f.duration > 0 {
		fmt.Fprintf(&b, ", for %v", f.duration)
	} else {
		b.WriteString(", until Ctrl-C")
	}
	return b.String()
}

// describeHarm is String's part on what goes wrong, restarts apart.
func (f *flags) describeHarm(b *strings.Builder) {
	if f.oddKeys > 0 {
		fmt.Fprintf(b, ", one odd key in %d", f.oddKeys)
	}
	if f.queueDelay > 0 {
		fmt.Fprintf(b, ", a queue of %v", f.queueDelay)
	}
	if f.tailLoss > 0 {
		fmt.Fprintf(b, ", a tail lost with probability %v", f.tailLoss)
	}
	if f.silentRemovals > 0 {
		fmt.Fprintf(b, ", %v silent removals/s", f.silentRemovals)
	}
	if f.segmentLossEvery > 0 {
		fmt.Fprintf(b, ", a segment lost every %v", f.segmentLossEvery)
	}
	if f.standby > 0 {
		fmt.Fprintf(b, ", a standby for %v", f.standby)
	}
}
