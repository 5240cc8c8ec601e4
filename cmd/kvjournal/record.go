package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/recorder"
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

// memoryLimit is what the Go runtime may hold before it collects harder, with the default object cache; Pebble's caches and memtables lie
// beside it.
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
	limit := memoryLimit + f.bufferMiB<<20 + max(0, f.bounds.objectsMiB<<20-index.DefaultObjectCache)
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
		Listen:    listen, ReadyLag: f.readyLag, ObjectCache: f.bounds.objectCache(),
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
