package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// captureBegin is the publisher time of the first message of a capture: a fixed one, so that equal flags give equal files.
var captureBegin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// writeCapture writes what a subscriber of an unhindered publisher would have received to a .kvcap file, and opens no socket. What
// --lose names was sent and is not in it.
func writeCapture(ctx context.Context, f *flags, stdout io.Writer) (err error) {
	from, to, err := f.lost()
	if err != nil {
		return err
	}
	w, err := capture.Create(vfs.Default, f.capture)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	traffic := mooncaketest.NewTraffic(f.options().Store, f.batch, captureBegin.UnixMilli())
	if f.rate > 0 {
		traffic.EventsPerMS = max(1, int(f.rate/1000))
	}
	if err := w.Write(capture.Record{Kind: capture.Connected, Received: captureBegin.UnixNano()}); err != nil {
		return err
	}
	var done summary
	for done.PublishedEvents < uint64(f.events) {
		if done.PublishedBatches%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		frames, ms := traffic.Next()
		received := ms*1e6 + int64(done.PublishedBatches%997)*1000
		done.PublishedBatches++ // now the message's seq
		done.PublishedEvents += uint64(f.batch)
		if from <= done.PublishedBatches && done.PublishedBatches <= to {
			continue
		}
		if err := w.Write(capture.Record{Kind: capture.Message, Received: received, Frames: frames}); err != nil {
			return err
		}
	}
	return json.NewEncoder(stdout).Encode(done)
}

// lost reads --lose: the first and the last seq that are left out. 0 and 0: none.
func (f *flags) lost() (from, to uint64, err error) {
	if f.lose == "" {
		return 0, 0, nil
	}
	first, last, _ := strings.Cut(f.lose, "-")
	from, err1 := strconv.ParseUint(first, 10, 64)
	to, err2 := strconv.ParseUint(last, 10, 64)
	if err1 != nil || err2 != nil || from == 0 || to < from {
		return 0, 0, fmt.Errorf("--lose %q: want two seqs, the first from 1 on, as 700-760", f.lose)
	}
	return from, to, nil
}
