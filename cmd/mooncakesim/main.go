package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// Exit codes, as kvjournal's.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, term.IsTerminal(int(os.Stderr.Fd()))))
}

// run is main with its surroundings as arguments. statusLine asks for a line on stderr that is renewed every second.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, statusLine bool) int {
	f, err := parse(args, stdout)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "mooncakesim: %v\nSee mooncakesim --help.\n", err)
		return exitUsage
	}
	work := func() error { return simulate(ctx, f, stdout, stderr, statusLine) }
	if f.capture != "" {
		work = func() error { return writeCapture(ctx, f, stdout) }
	}
	if err := work(); err != nil {
		fmt.Fprintf(stderr, "mooncakesim: %v\n", err)
		return exitFailed
	}
	return 0
}

func simulate(ctx context.Context, f *flags, stdout, stderr io.Writer, statusLine bool) (err error) {
	o := f.options()
	if f.truth != "" {
		truth, err := mooncaketest.CreateTruth(f.truth)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, truth.Close()) }()
		o.Truth = truth
	}
	sim, err := mooncaketest.NewSim(o)
	if err != nil {
		return err
	}
	if f.admin != "" {
		server, err := mooncaketest.NewAdmin(sim, f.adminOptions()).Serve(f.admin)
		if err != nil {
			return errors.Join(fmt.Errorf("--admin: %w", err), sim.Close())
		}
		defer server.Close()
		fmt.Fprintf(stderr, "mooncakesim: admin API on %s\n", server.URL())
	}
	fmt.Fprintf(stderr, "mooncakesim: publishing on %s: %s\n", sim.Endpoint(), f)
	start := time.Now()
	stopStatus := func() {}
	if statusLine {
		stopStatus = showStatus(sim, start, stderr)
	}
	err = sim.Run(ctx)
	stopStatus()
	seconds := time.Since(start).Seconds()
	total := sim.Totals()
	return errors.Join(err, json.NewEncoder(stdout).Encode(summary{
		Stats:           total,
		SilentlyRemoved: sim.Silent(),
		Seconds:         seconds,
		EventsPerSecond: float64(total.PublishedEvents) / seconds,
	}))
}

// summary is what goes to stdout at the end.
type summary struct {
	mooncaketest.Stats
	SilentlyRemoved int     `json:"silently_removed,omitempty"` // changes that no event told of, one an object
	Seconds         float64 `json:"seconds"`
	EventsPerSecond float64 `json:"events_per_second"`
}
