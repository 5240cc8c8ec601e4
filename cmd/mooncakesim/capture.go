package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// captureBegin is the publisher time of the first message of a capture: a fixed one, so that equal flags give equal files.
var captureBegin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// writeCapture writes what a subscriber of an unhindered publisher would have received to a .kvcap file, and opens no socket.
func writeCapture(ctx context.Context, f *flags, stdout io.Writer) (err error) {
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
		if err := w.Write(capture.Record{Kind: capture.Message, Received: ms*1e6 + int64(done.PublishedBatches%997)*1000, Frames: frames}); err != nil {
			return err
		}
		done.PublishedBatches++
		done.PublishedEvents += uint64(f.batch)
	}
	return json.NewEncoder(stdout).Encode(done)
}
