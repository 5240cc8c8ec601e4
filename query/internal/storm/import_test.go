package storm

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/recorder"
)

const capturePath = "/storm.kvcap"

// writeCapture writes the run's stream as a capture.
func (r *run) writeCapture(fs vfs.FS) error {
	w, err := capture.Create(fs, capturePath)
	if err != nil {
		return err
	}
	for i := range r.stream.Records {
		if err := w.Write(r.stream.Records[i]); err != nil {
			return err
		}
	}
	return w.Close()
}

// importAll imports that capture, as the command does: the records become those that a recorder would have written.
func (r *run) importAll() error {
	for i := range r.stream.Records {
		if err := r.take(uint64(i+1), taken{rec: r.stream.Records[i]}); err != nil {
			return err
		}
	}
	if err := r.start(); err != nil {
		return errors.Join(err, r.stop())
	}
	s, _ := r.j.SourceNamed(source)
	if _, err := recorder.Import(ctx, r.j, s, capturePath, recorder.ImportOptions{FS: r.fs}); err != nil {
		return errors.Join(fmt.Errorf("importing: %w", err), r.stop())
	}
	for _, step := range []func() error{
		func() error { return r.j.Seal(ctx) }, r.j.Flush, func() error { return r.x.CatchUp(ctx, nil) }, r.x.Flush, func() error { return r.x.Settle(ctx) },
	} {
		if err := step(); err != nil {
			return errors.Join(fmt.Errorf("finishing: %w", err), r.stop())
		}
	}
	return r.stop()
}
