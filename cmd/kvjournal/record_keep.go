package main

import (
	"fmt"

	"github.com/kvjournal/kvjournal/query/service"
)

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
