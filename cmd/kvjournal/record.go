package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/index/mooncake"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/subscribe"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

type recordFlags struct {
	dir       string
	endpoints []string
	masters   []string
	sources   []string
	bufferMiB int64
	bounds    bounds
	minFree   string
	master    service.MasterConfig
	tokenFile string
	caFile    string
	duration  time.Duration
	keep      string
	keepBytes string
	listen    listenFlags
	readyLag  uint64
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record the event stream of one or more masters, index it, and answer questions",
		Long: `Records the KV event stream of one or more Mooncake masters, keeps the index, and answers the other commands given the
same --dir while it runs. It ends at Ctrl-C or SIGTERM, when all that was received is durable.

What "durable offset" shows survives kill -9 and a loss of power; at most what was received in the last few milliseconds
does not.

While less than --min-free is free on the disk, recording pauses: gaps lists what is lost meanwhile as recorder_down. On a disk that is full
all the same it stalls until there is room. Any other failure of the disk ends it with exit code 1.

Programs ask it over HTTP on --listen: GET /openapi.yaml says what, /metrics is for Prometheus, /readyz for probes. Others than this
machine's users need a token (--token-file), and who is to have the master read one of --reconcile-token-file.

What is kept is bounded by --keep-bytes, and by --keep if it is given: beyond that the oldest goes, as with kvjournal prune, which says what
that leaves. Where what stands for objects that are gone takes a quarter of --keep-bytes, they are forgotten, as with prune
--forget-removed.`,
		Example: `  kvjournal record --endpoint tcp://master:5557 --master http://master:9003 --dir /var/lib/kvjournal
  kvjournal record --source name=a,endpoint=tcp://m1:5557 \
      --source name=b,endpoint=tcp://m2:5557,master=http://m2:9003
  kvjournal record --endpoint tcp://m1:5557 --endpoint tcp://m2:5557 \
      --master http://m1:9003 --master http://m2:9003`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			sources, err := f.configs()
			if err != nil {
				return usageError(err)
			}
			if f.bufferMiB < 1 {
				return usageError(fmt.Errorf("--buffer %d: at least 1 MiB", f.bufferMiB))
			}
			if err := f.bounds.check(); err != nil {
				return usageError(err)
			}
			minFree, err := f.leastFree(cmd.Flags().Changed("min-free"))
			if err != nil {
				return usageError(err)
			}
			if f.duration < 0 {
				return usageError(fmt.Errorf("--duration %v: must not be negative", f.duration))
			}
			if err := f.readMaster(); err != nil {
				return err
			}
			retention, err := f.retention()
			if err != nil {
				return err
			}
			listen, err := f.listen.config(cmd)
			if err != nil {
				return err
			}
			return runRecord(cmd, &f, sources, minFree, retention, listen)
		},
	}
	dirFlag(cmd, &f.dir)
	cmd.Flags().StringArrayVar(&f.endpoints, "endpoint", nil, "ZMQ address of the publisher; it is the source \"default\"; several are\nthe masters of one HA group")
	cmd.Flags().StringArrayVar(&f.masters, "master", nil, "admin URL of the master of --endpoint, one for each: doubts are resolved\nwith it")
	cmd.Flags().StringArrayVar(&f.sources, "source", nil, "a source: name=NAME,endpoint=ADDRESS[,endpoint=…][,master=URL,…]; repeatable")
	cmd.Flags().Int64Var(&f.bufferMiB, "buffer", recorder.DefaultBuffer>>20, "MiB of messages that may wait for the disk; when full, nothing is read")
	f.bounds.flags(cmd)
	cmd.Flags().StringVar(&f.minFree, "min-free", defaultMinFree, "pause while less is free on the disk of DIR, and go on by itself; questions are\nanswered meanwhile. 0: never. (default on disks below 20 GiB: a twentieth)")
	cmd.Flags().DurationVar(&f.master.PollEvery, "poll-every", service.DefaultPollEvery, "how often a master's counters are asked for")
	cmd.Flags().DurationVar(&f.master.AuditEvery, "audit-every", 15*time.Minute, "how often all that is confirmed is compared with the master; 0: never")
	cmd.Flags().StringVar(&f.tokenFile, "master-token-file", "", "file with a bearer token for the masters")
	cmd.Flags().StringVar(&f.caFile, "master-ca", "", "PEM file with the certificates that may sign the masters' (default: the system's)")
	cmd.Flags().StringVar(&f.keep, "keep", "", "how long what was received is kept, as 30d or 12h (default: for ever)")
	cmd.Flags().StringVar(&f.keepBytes, "keep-bytes", "", "how large journal and index may become together, as 100GB; 0: without bound\n(default: 80 % of the volume)")
	f.listen.add(cmd)
	cmd.Flags().Uint64Var(&f.readyLag, "ready-lag", service.DefaultReadyLag, "records that the index may be behind the journal for /readyz to say yes")
	cmd.Flags().DurationVar(&f.duration, "duration", 0, "end after this time (0: at Ctrl-C)")
	return asService(cmd)
}

// configs are the sources that the flags name.
func (f *recordFlags) configs() ([]service.SourceConfig, error) {
	var out []service.SourceConfig
	if len(f.endpoints) > 0 {
		out = append(out, service.SourceConfig{Name: "default", Endpoints: f.endpoints, Masters: f.masters})
	} else if len(f.masters) > 0 {
		return nil, fmt.Errorf("--master goes with --endpoint")
	}
	for _, text := range f.sources {
		c, err := parseSource(text)
		if err != nil {
			return nil, fmt.Errorf("--source %q: %w; write name=NAME,endpoint=tcp://HOST:PORT[,master=URL]", text, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("nothing to record: give --endpoint tcp://HOST:PORT, or --source")
	}
	names := map[string]bool{}
	for _, c := range out {
		if names[c.Name] {
			return nil, fmt.Errorf("two sources are named %q", c.Name)
		}
		names[c.Name] = true
		if err := checkSource(&c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func checkSource(c *service.SourceConfig) error {
	if len(c.Endpoints) == 0 {
		return fmt.Errorf("source %q has no endpoint", c.Name)
	}
	seen := map[string]bool{}
	for _, e := range c.Endpoints {
		if err := subscribe.CheckEndpoint(e); err != nil {
			return fmt.Errorf("source %q: %w; write tcp://HOST:PORT", c.Name, err)
		}
		if seen[e] {
			return fmt.Errorf("source %q has the endpoint %s twice", c.Name, e)
		}
		seen[e] = true
	}
	for _, m := range c.Masters {
		if err := mooncake.CheckURL(m); err != nil {
			return fmt.Errorf("source %q: %w", c.Name, err)
		}
	}
	if n := len(c.Masters); n > 0 && n != len(c.Endpoints) {
		return fmt.Errorf("source %q has %d endpoints and %d masters; give one master for each endpoint, in the same order", c.Name, len(c.Endpoints), n)
	}
	return nil
}

// readMaster checks what says how masters are asked, and reads its files.
func (f *recordFlags) readMaster() error {
	if f.master.PollEvery < 100*time.Millisecond {
		return usageError(fmt.Errorf("--poll-every %v: at least 100ms", f.master.PollEvery))
	}
	if f.master.AuditEvery < 0 {
		return usageError(fmt.Errorf("--audit-every %v: must not be negative", f.master.AuditEvery))
	}
	if f.master.AuditEvery == 0 {
		f.master.AuditEvery = -1
	}
	if f.tokenFile != "" {
		b, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return fmt.Errorf("--master-token-file: %w", err)
		}
		f.master.Token = strings.TrimSpace(string(b))
	}
	if f.caFile != "" {
		b, err := os.ReadFile(f.caFile)
		if err != nil {
			return fmt.Errorf("--master-ca: %w", err)
		}
		f.master.CA = b
	}
	return nil
}

func parseSource(text string) (service.SourceConfig, error) {
	var c service.SourceConfig
	for _, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok || value == "" {
			return c, fmt.Errorf("%q is no key=value", part)
		}
		switch key {
		case "name":
			c.Name = value
		case "endpoint":
			c.Endpoints = append(c.Endpoints, value)
		case "master":
			c.Masters = append(c.Masters, value)
		default:
			return c, fmt.Errorf("unknown key %q", key)
		}
	}
	if c.Name == "" {
		return c, fmt.Errorf("it has no name")
	}
	return c, nil
}

// volumePercent is how much of the volume a directory may take by default.
const volumePercent = 80

// retention is what the flags say to keep.
func (f *recordFlags) retention() (r service.Retention, err error) {
	if f.keep != "" {
		if r.Keep, err = parseKeep(f.keep); err != nil {
			return r, usageError(fmt.Errorf("--keep %q: %w", f.keep, err))
		}
	}
	switch f.keepBytes {
	case "":
		if r.KeepBytes, err = service.VolumeShare(nil, f.dir, volumePercent); err != nil {
			return r, fmt.Errorf("the size of the volume, of which %d %% may be taken, cannot be read: %w; give --keep-bytes", volumePercent, err)
		}
	case "0":
	default:
		if r.KeepBytes, err = parseSome(f.keepBytes); err != nil {
			return r, usageError(fmt.Errorf("--keep-bytes %q: %w", f.keepBytes, err))
		}
	}
	return r, nil
}

// retentionText says what is kept.
func (f *recordFlags) retentionText(r *service.Retention) string {
	text := "everything"
	if r.Keep > 0 {
		text = "what was received in the last " + f.keep
	}
	if r.KeepBytes > 0 {
		text += ", up to " + bytesOf(r.KeepBytes)
		if f.keepBytes == "" {
			text += fmt.Sprintf(" (%d %% of the volume; --keep-bytes changes it)", volumePercent)
		}
	}
	return text
}

// memoryLimit is what the Go runtime may hold before it collects harder; Pebble's caches and memtables lie beside it.
const memoryLimit = 160 << 20

// readingMemory is what a reading of a master with a million objects holds beside that. Within the other limit it made the runtime
// collect all the time, and take the processor from everything else.
const readingMemory = 64 << 20

func runRecord(cmd *cobra.Command, f *recordFlags, sources []service.SourceConfig, minFree uint64, retention service.Retention, listen httpapi.Listen) error {
	ctx := cmd.Context()
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	limit := memoryLimit + f.bufferMiB<<20
	for _, c := range sources {
		if len(c.Masters) > 0 {
			limit += readingMemory
			break // readings of several sources are rare to meet; then the runtime collects more
		}
	}
	debug.SetMemoryLimit(limit)
	stderr := cmd.ErrOrStderr()
	status := newStatusLine(stderr)
	log := slog.New(slog.NewTextHandler(status, nil))
	s, err := service.Record(ctx, service.Config{
		Dir: f.dir, Sources: sources, Log: log, Recorder: f.bounds.options(f.bufferMiB << 20), Master: f.master,
		MinFree:   minFree,
		Retention: retention,
		Listen:    listen, ReadyLag: f.readyLag,
	})
	if err != nil {
		return err
	}
	log.Info("keeping", "what", f.retentionText(&retention))
	for _, c := range sources {
		log.Info("recording", "source", c.Name, "endpoint", strings.Join(c.Endpoints, ","), "dir", f.dir)
		if len(c.Masters) > 0 {
			log.Info("reconciling with the master", "source", c.Name, "master", strings.Join(c.Masters, ","))
		}
	}
	status.follow(s)
	err = s.Wait()
	status.end()
	if err != nil {
		return err
	}
	st := s.Status()
	log.Info("stopped in good order", "durable_offset", st.Durable, "messages", st.Messages, "events", st.Events)
	return nil
}

// statusLine shows a live line at the bottom of a terminal, below the log; elsewhere it only passes the log on.
type statusLine struct {
	out  io.Writer
	live bool
	line chan string
	log  chan logged
	stop chan struct{}
	done chan struct{}
}

type logged struct {
	b    []byte
	done chan error
}

const clearLine = "\r\x1b[K"

func newStatusLine(w io.Writer) *statusLine {
	s := &statusLine{out: w, live: isTerminal(w), line: make(chan string), log: make(chan logged), stop: make(chan struct{}), done: make(chan struct{})}
	go s.write()
	return s
}

// write is the only one that writes to the terminal.
func (s *statusLine) write() {
	defer close(s.done)
	shown := ""
	for {
		select {
		case l := <-s.log:
			if shown != "" {
				fmt.Fprint(s.out, clearLine)
			}
			_, err := s.out.Write(l.b)
			fmt.Fprint(s.out, shown)
			l.done <- err
		case line := <-s.line:
			shown = line
			fmt.Fprint(s.out, clearLine+line)
		case <-s.stop:
			return
		}
	}
}

// Write passes a log line on, above the status line.
func (s *statusLine) Write(b []byte) (int, error) {
	l := logged{b, make(chan error, 1)}
	select {
	case s.log <- l:
		return len(b), <-l.done
	case <-s.done:
		return os.Stderr.Write(b)
	}
}

// follow shows the service's figures once a second until it ends.
func (s *statusLine) follow(svc *service.Service) {
	if !s.live {
		return
	}
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		before, at := svc.Status(), time.Now()
		for {
			select {
			case <-svc.Done():
				return
			case now := <-t.C:
				st := svc.Status()
				rate := float64(st.Events-before.Events) / now.Sub(at).Seconds()
				select {
				case s.line <- statusText(&st, uint64(rate)):
				case <-s.done:
					return
				}
				before, at = st, now
			}
		}
	}()
}

func statusText(st *service.Status, rate uint64) string {
	connected := 0
	for _, so := range st.Sockets {
		if so.Connected {
			connected++
		}
	}
	if p := st.Paused; p != nil {
		return fmt.Sprintf("PAUSED: %s free, --min-free %s  durable offset %s", bytesOf(p.Free), bytesOf(p.Least), number(st.Durable))
	}
	return fmt.Sprintf("%d of %d connected  %s events/s  %s events, durable offset %s  index %s behind  buffer %s",
		connected, len(st.Sockets), number(rate), number(st.Events), number(st.Durable), number(st.Durable-min(st.Durable, st.Applied)), bytesOf(uint64(st.Buffered)))
}

// end clears the line; what is logged later goes straight through.
func (s *statusLine) end() {
	if s.live {
		select {
		case s.line <- "":
		case <-s.done:
		}
	}
	close(s.stop)
	<-s.done
}
