package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/datadir"
	"github.com/kvjournal/kvjournal/query"
)

func newExport() *cobra.Command {
	var a *asking
	var path, format string
	var force bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "A span of a source as a .kvcap capture or as ndjson, exactly as it was received",
		Long: `Writes what was recorded of one source between two moments.

  kvcap   a capture: all frames of each message, when it was received, and when the connection came
          and went. Imported elsewhere it gives the answers and gaps of the stream alone: a time
          when no recorder ran becomes a broken connection (recorder_down is then disconnected), and
          a span that does not begin with the publisher's first message begins with late_join.
  ndjson  a JSON object a line: every record, the recorder's own too, with its frames in base64 and
          its decoded events.

A FILE that ends in .zst is compressed. It appears under its name when it is whole: an export that fails or is
interrupted leaves nothing behind.

` + whenHelp,
		Example: `  kvjournal export --from -1h --out incident.kvcap.zst
  kvjournal import --dir /tmp/incident incident.kvcap.zst     # there
  kvjournal export --format ndjson --from offset:1000 --to offset:2000`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "kvcap" && format != "ndjson" {
				return usageError(fmt.Errorf("--format %q: use kvcap or ndjson", format))
			}
			a.fixed.Set("format", format)
			if path != "-" {
				var records uint64
				err := exportFile(vfs.Default, path, force, func(w io.Writer) (err error) {
					records, err = a.export(w, format)
					return err
				})
				if err == nil {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s %s\n", path, number(records), query.Plural(records, "record", "records"))
				}
				return err
			}
			if format == "kvcap" && isTerminal(cmd.OutOrStdout()) {
				return usageError(errors.New("a capture is bytes that a terminal cannot show: name a file with --out FILE.kvcap.zst, or use --format ndjson"))
			}
			out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
			_, err := a.export(out, format)
			return errors.Join(err, out.Flush())
		},
	}
	a = &asking{cmd: cmd, fixed: url.Values{}, output: "json"}
	dirFlag(cmd, &a.dir)
	a.text("source", "source", "source (needed where there are several)")
	a.span()
	cmd.Flags().StringVar(&format, "format", "kvcap", "kvcap or ndjson")
	cmd.Flags().StringVar(&path, "out", "-", "file to write; - is stdout")
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE where it exists")
	return cmd
}

// export writes the answer to w in its format, and counts its records.
func (a *asking) export(w io.Writer, format string) (records uint64, err error) {
	t, err := openTarget(a.cmd.Context(), a.dir)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	show := func(line []byte) error {
		if _, err := w.Write(line); err != nil {
			return err
		}
		_, err := w.Write([]byte{'\n'})
		return err
	}
	finish := func() error { return nil }
	joined := uint64(0)
	if format == "kvcap" {
		out, err := capture.NewWriter(w)
		if err != nil {
			return 0, err
		}
		var rec capture.Record
		var in query.CaptureJSON
		finish = out.Flush
		show = func(line []byte) error {
			if err := in.Read(line, &rec); err != nil {
				return err
			}
			if fit := capture.Fit(rec.Frames); len(fit) < len(rec.Frames) {
				joined++
				rec.Frames = fit
			}
			return out.Write(rec)
		}
	}
	err = t.question(a.cmd.Context(), "export", a.values(), "exporting", func(line []byte) error {
		records++
		return show(line)
	})
	if err != nil {
		return records, err
	}
	if joined > 0 {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "%s of more than %d frames, which a capture cannot hold: all frames from the %dth on are one there. No publisher sends such; they are damaged, here and there.\n",
			number(joined)+query.Plural(joined, " message", " messages"), capture.MaxFrames, capture.MaxFrames)
	}
	if err := a.noteHorizon(t, "export"); err != nil {
		return records, err
	}
	return records, finish()
}

// exportFile has write fill a new file beside path, compressed if path ends in .zst, which takes that name when it is whole and on
// disk. After an error there is nothing.
func exportFile(fs vfs.FS, path string, force bool, write func(io.Writer) error) (err error) {
	taken := func() error {
		if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && force {
			return nil
		} else if err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return usageError(fmt.Errorf("--out %s: it exists; --force replaces it", path))
	}
	if err := taken(); err != nil {
		return err
	}
	var random [6]byte
	rand.Read(random[:])
	dir := fs.PathDir(path)
	temporary := fs.PathJoin(dir, "."+fs.PathBase(path)+"."+hex.EncodeToString(random[:])+".partial")
	file, err := fs.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	open := true
	defer func() {
		if open {
			file.Close()
		}
		if err != nil {
			fs.Remove(temporary)
		}
	}()
	out := bufio.NewWriterSize(file, 256<<10)
	if strings.HasSuffix(path, ".zst") {
		z, err := zstd.NewWriter(out)
		if err != nil {
			return err
		}
		err = write(z)
		if cerr := z.Close(); err == nil { // in any case: it ends the encoder's goroutines
			err = cerr
		}
		if err != nil {
			return err
		}
	} else if err := write(out); err != nil {
		return err
	}
	if err := errors.Join(out.Flush(), file.Sync()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	open = false
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := taken(); err != nil {
		return err
	}
	if err := fs.Rename(temporary, path); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_ = datadir.SyncDir(fs, dir) // it is there; where this fails only a loss of power could take it
	return nil
}
