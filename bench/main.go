// Command bench measures kvjournal beside what could be used instead, on the same messages, in turn: package run has the workloads,
// package contender the contenders and what each promises. The table goes to stdout; latest.json and the plots go to --out.
//
// With --growth it fills one directory of kvjournal, or of the contender that is named, to several sizes instead, and measures what
// appending and asking cost at each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/report"
	"github.com/kvjournal/kvjournal/bench/run"
)

type flags struct {
	contest  run.Options
	growth   []int
	grows    string // the contender that does
	out      string
	profile  string
	redraw   bool
	feed     bool
	events64 int
	events1  int
	day      int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f, err := parse(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	if err == nil {
		err = f.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*flags, error) {
	f := &flags{}
	o := &f.contest
	set := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	set.SortFlags = false
	set.IntVar(&o.Rounds, "rounds", 5, "how often everything is done; what is told is the median, with the least and the most")
	set.IntVar(&f.events64, "events-64", 1_000_000, "`events` in messages of 64; 0 leaves the shape out")
	set.IntVar(&f.events1, "events-1", 300_000, "`events` in messages of one; 0 leaves the shape out")
	set.IntVar(&f.day, "events-day", 1_000_000, "`events` of a mixed day; 0 leaves the shape out")
	set.IntVar(&o.Objects, "objects", 100_000, "live `objects` that each shape grows to; with --growth 1000000 is meant")
	set.IntVar(&o.Acks, "acks", 300, "`groups` that are waited for one by one")
	set.IntVar(&o.Gets, "gets", 5000, "`messages` that are asked for by seq")
	set.IntVar(&o.Lookups, "lookups", 20_000, "single `questions` of each kind")
	set.Uint64Var(&o.Seed, "seed", 1, "selects messages and questions: equal flags give equal ones")
	set.StringSliceVar(&o.Contenders, "contenders", nil, "only these `contenders`; all")
	set.StringSliceVar(&o.Workloads, "workloads", nil, "only these: journal, places; both")
	set.StringVar(&o.Dir, "dir", "", "`directory` on the disk to be measured; that of temporary files")
	set.StringVar(&f.out, "out", "results", "`directory` of latest.json and the plots; empty: nothing is written")
	set.IntSliceVar(&f.growth, "growth", nil, "grow one directory of kvjournal, or of --contenders, to these numbers of `events` instead: 1000000,10000000,100000000")
	set.StringVar(&f.profile, "cpu-profile", "", "write a CPU profile of all that is done to this `file`")
	set.BoolVar(&f.redraw, "redraw", false, "draw the plots from the results in --out again, and print the table")
	set.BoolVar(&f.feed, "feed", false, "make the messages of a growth, on stdin and stdout")
	if err := set.MarkHidden("feed"); err != nil {
		return nil, err
	}
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: everything is a flag", set.Arg(0))
	}
	if o.Rounds < 1 || o.Objects < 1 || o.Acks < 1 || o.Gets < 1 || o.Lookups < 10 {
		return nil, errors.New("at least one round, object, ack and get, and 10 lookups")
	}
	if err := known("contender", o.Contenders, contenderNames()); err != nil {
		return nil, err
	}
	if err := known("workload", o.Workloads, run.Workloads); err != nil {
		return nil, err
	}
	for _, n := range f.growth {
		if n < 1 {
			return nil, errors.New("a growth's sizes are numbers of events, from 1 on")
		}
	}
	if len(f.growth) > 0 {
		if !set.Changed("objects") {
			o.Objects = 1_000_000
		}
		kind, err := o.Growing()
		if err != nil {
			return nil, err
		}
		f.grows = kind.Name
	}
	slices.Sort(f.growth)
	o.Events = map[string]int{"64": f.events64, "1": f.events1, "day": f.day}
	begun := time.Now()
	o.Talk = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(begun).Seconds(), fmt.Sprintf(format, args...))
	}
	return f, nil
}

// known reports what was asked for and is not there.
func known(what string, asked, there []string) error {
	for _, name := range asked {
		if !slices.Contains(there, name) {
			return fmt.Errorf("no %s %q; there is %s", what, name, strings.Join(there, ", "))
		}
	}
	return nil
}

func contenderNames() (names []string) {
	for _, k := range contender.All() {
		names = append(names, k.Name)
	}
	return names
}

func (f *flags) run(ctx context.Context) error {
	if f.feed {
		feed, err := run.NewFeed(&f.contest)
		if err != nil {
			return err
		}
		return feed.Serve(stdio{os.Stdin, os.Stdout})
	}
	if f.profile != "" {
		file, err := os.Create(f.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	name, measure := "latest", func() ([]report.Result, error) { return run.Contest(ctx, f.contest) }
	if len(f.growth) > 0 {
		f.contest.Feed = f.feeder
		name, measure = "growth", func() ([]report.Result, error) { return run.Growth(ctx, f.contest, f.growth) }
		if f.grows != report.Base {
			name += "-" + f.grows
		}
	}
	path := filepath.Join(f.out, name+".json")
	if f.redraw {
		measure = func() ([]report.Result, error) { return report.ReadJSON(path) }
	}
	fmt.Println(machine())
	results, err := measure()
	if terr := report.Table(os.Stdout, results); err == nil {
		err = terr
	}
	if err != nil || f.out == "" {
		return err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return err
	}
	if !f.redraw {
		if err := report.WriteJSON(path, results); err != nil {
			return err
		}
	}
	if f.grows != "" && f.grows != report.Base {
		return nil // the plots are of kvjournal's
	}
	return report.Plots(f.out, results)
}

// feeder starts this program again, to make messages. It ends when its stdin is closed.
func (f *flags) feeder() (io.ReadWriteCloser, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "--feed", "--objects", strconv.Itoa(f.contest.Objects), "--seed", strconv.FormatUint(f.contest.Seed, 10))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return stdio{out, in}, cmd.Start()
}

// stdio is what one process reads and writes.
type stdio struct {
	io.Reader
	io.WriteCloser
}

// machine says where this was measured.
func machine() string {
	model := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(b), "\n") {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.TrimLeft(name, "\t: ")
				break
			}
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("machine: %d cores, %s, %s, load %s", runtime.NumCPU(), model, runtime.Version(), first)
}
