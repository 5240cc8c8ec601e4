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

const usage = `mooncakesim publishes the KV event stream of a Mooncake Store master, for tests and demos of kvjournal.

It keeps a store of objects that live as in a cache (put, offload to disk, eviction from memory, removal, upsert, now
and then a remove-all of the last tenant) and announces each change on a ZMQ PUB socket, with the queue, the numbering
and the losses of the real publisher. Ctrl-C ends it; the last line, on stdout, is its counters as JSON.

  mooncakesim --rate 1000                                    a calm master
  mooncakesim --rate 0 --duration 10s                        a master at full speed
  mooncakesim --queue-capacity 256 --burst 5000              losses in the queue, every 5 s
  mooncakesim --restart-every 20s --truth truth.jsonl.zst    restarts, and what was true
  mooncakesim --capture day.kvcap.zst --events 1000000       no socket: a file for kvjournal import

Flags:
`

// flags are the command's flags.
type flags struct {
	bind          string
	rate          float64
	duration      time.Duration
	seed          uint64
	tenants       int
	objects       int
	queueCapacity int
	burst         int
	restartEvery  time.Duration
	legacy        bool
	objectKey     bool
	backendID     string
	racyClears    bool
	truth         string
	capture       string
	events        int
	batch         int
}

// parse reads the command line. It prints the usage to help, and returns pflag.ErrHelp, if the line asks for it.
func parse(args []string, help io.Writer) (*flags, error) {
	f := &flags{}
	set := pflag.NewFlagSet("mooncakesim", pflag.ContinueOnError)
	set.SetOutput(help)
	set.SortFlags = false
	set.Usage = func() { fmt.Fprint(help, usage, set.FlagUsagesWrapped(100)) }

	set.StringVar(&f.bind, "bind", "tcp://127.0.0.1:5557", "ZMQ `endpoint` to bind; tcp://127.0.0.1:* takes a free port and prints it")
	set.Float64Var(&f.rate, "rate", 1000, "`events` per second, spread evenly; 0 = flat out: as the real publisher at full speed, 620,000 or what this machine can (more: give a number)")
	set.DurationVar(&f.duration, "duration", 0, "end after this `time`, as 30s or 5m; 0 = at Ctrl-C")
	set.Uint64Var(&f.seed, "seed", 1, "`number` that selects the sequence of changes: the same flags and seed give the same one")
	set.IntVar(&f.tenants, "tenants", 3, "`number` of tenants: default, tenant-1, tenant-2, … The last of several is small and is the one that remove-alls empty")
	set.IntVar(&f.objects, "objects", 100_000, "`number` of live objects, over all tenants, that the store grows to and then keeps")
	set.IntVar(&f.queueCapacity, "queue-capacity", mooncaketest.DefaultQueueCapacity, "most `events` that wait for the sender; beyond it the oldest are dropped, and leave a gap in seq")
	set.IntVar(&f.burst, "burst", 0, "`events` that come at once every 5 s, on top of the rate; 0 = none. About twice the queue capacity or more overflows it")
	set.DurationVar(&f.restartEvery, "restart-every", 0, "kill the publisher each time this `time` has passed and start a new one on the same port: an empty store, seq and event_id from 1; 0 = never")
	set.BoolVar(&f.legacy, "legacy", true, "send the legacy fields too (type, block_hashes, parent_block_hash)")
	set.BoolVar(&f.objectKey, "object-key", true, "send object keys; with =false stored and removed are suppressed, as by the real publisher, and only cleared is sent")
	set.StringVar(&f.backendID, "backend-id", mooncaketest.DefaultBackendID, "backend_id of all events")
	set.BoolVar(&f.racyClears, "racy-clears", false, "store some objects between a remove-all's last removed and its cleared; they live on, as on some real masters")
	set.StringVar(&f.truth, "truth", "", "write the true state to this `file` (JSON lines; compressed if it ends in .zst): changes stop for 400 ms every 3 s, a line is written and flushed once the queue is empty, and one more at the end")

	set.StringVar(&f.capture, "capture", "", "open no socket; write what would be received to this .kvcap or .kvcap.zst `file`, --events of them")
	set.IntVar(&f.events, "events", 1_000_000, "`number` of events of a --capture")
	set.IntVar(&f.batch, "batch", mooncaketest.BatchEvents, "`events` a message of a --capture, 1 to 64")

	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: everything is a flag", set.Arg(0))
	}
	return f, f.check()
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
	must(f.events >= 1, "--events %d: must be at least 1", f.events)
	must(f.batch >= 1 && f.batch <= mooncaketest.BatchEvents, "--batch %d: must be 1 to %d", f.batch, mooncaketest.BatchEvents)
	must(f.backendID != "", "--backend-id: must not be empty")
	return errors.Join(errs...)
}

func (f *flags) options() mooncaketest.SimOptions {
	rate := f.rate
	if rate == 0 {
		rate = flatOutRate
	}
	return mooncaketest.SimOptions{
		Publisher: mooncaketest.Options{
			Bind:          f.bind,
			QueueCapacity: f.queueCapacity,
			NoLegacy:      !f.legacy,
			NoObjectKey:   !f.objectKey,
			BackendID:     f.backendID,
		},
		Store: mooncaketest.StoreOptions{
			Seed:       f.seed,
			Tenants:    f.tenants,
			Objects:    f.objects,
			ClearEvery: max(100, int(rate*clearEvery.Seconds())),
			RacyClears: f.racyClears,
		},
		Rate:         rate,
		Duration:     f.duration,
		Burst:        f.burst,
		RestartEvery: f.restartEvery,
	}
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
