package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

// follower follows a log through the recorders of a directory, and through the times when none runs.
//
// It knows how far everything was told, from the positions between the lines, and which lines came behind that: so it goes on
// exactly there, at whatever line an answer broke off.
type follower struct {
	dir    string
	values url.Values
	limit  uint64 // lines; 0: none
	show   func([]byte) error
	flush  func() error

	reached  bool   // a position was told: from there on it is what counts, not --from
	position uint64 // all up to it was told
	offset   uint64 // of the last line
	lines    int    // how many were shown of that offset
	shown    uint64
}

// follow shows the log until ctx ends, or --limit is reached.
func (a *asking) follow(ctx context.Context, table func(printer) (func([]byte) error, func())) (err error) {
	if err := checkOutput(a.output); err != nil {
		return err
	}
	values := a.values()
	limit, _ := a.cmd.Flags().GetUint64("limit")
	if values.Has("to") {
		return usageError(errors.New("--follow has no end: leave --to out"))
	}
	if from := values.Get("from"); strings.HasPrefix(from, "-") { // it must mean the same moment when it is asked for again
		w, err := query.ParseWhen(from, time.Now())
		if err != nil {
			return err
		}
		values.Set("from", strconv.FormatInt(w.Ms, 10))
	}
	out := newPrinter(a.cmd.OutOrStdout())
	defer func() { err = errors.Join(err, out.Flush()) }()
	f := follower{dir: a.dir, values: values, limit: limit, show: out.line, flush: out.Flush}
	if a.output == "table" {
		f.show, _ = table(out)
	}
	err = f.run(ctx)
	if ctx.Err() != nil {
		return nil // Ctrl-C is how it ends
	}
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

var errLimit = errors.New("as many lines as were asked for")

func (f *follower) run(ctx context.Context) error {
	for said, silence := false, false; ; {
		before := f.head()
		live, err := f.ask(ctx)
		var gone *httpapi.GoneError
		var busy *service.LiveError
		var silent *service.SilentError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && !live:
			if !said {
				fmt.Fprintf(os.Stderr, "no recorder runs on %s; waiting for one (Ctrl-C ends)\n", f.dir)
			}
			said = true
			err = f.await(ctx, before)
		case errors.As(err, &silent):
			if !silence {
				fmt.Fprintf(os.Stderr, "%v; waiting for it (Ctrl-C ends)\n", silent)
			}
			silence = true
			err = pause.For(ctx, followPause)
		case err == nil, errors.As(err, &gone), errors.As(err, &busy):
			said, silence = false, false
			err = pause.For(ctx, followPause)
		}
		if err != nil {
			return err
		}
	}
}

// followPause is how often it looks for a recorder where there is none, and between two attempts.
const followPause = 100 * time.Millisecond

// head tells whether anything was written: the journal keeps its newest offset in this file.
func (f *follower) head() string {
	b, err := os.ReadFile(filepath.Join(f.dir, "head"))
	if err != nil {
		return ""
	}
	return string(b)
}

// await waits until a recorder answers, or something was written by whoever came and went meanwhile.
func (f *follower) await(ctx context.Context, before string) error {
	for {
		if _, err := service.FindSocket(ctx, f.dir, 0); err == nil || f.head() != before {
			return ctx.Err()
		}
		if err := pause.For(ctx, followPause); err != nil {
			return err
		}
	}
}

// ask shows what comes behind what was shown. From a recorder it goes on until that ends; of a directory at rest it shows all
// there is, and gives it up.
func (f *follower) ask(ctx context.Context) (live bool, err error) {
	t, err := openTarget(ctx, f.dir)
	if err != nil {
		return false, err
	}
	defer t.Close()
	values, skip := f.next()
	take := func(line []byte) error {
		if bytes.HasPrefix(line, []byte(`{"position":`)) {
			return f.at(line)
		}
		return f.line(line, &skip)
	}
	if t.live != nil {
		values.Set("follow", "true")
		return true, t.live.Ask(ctx, "log", values, nil, take)
	}
	out := guarded{check: t.undisturbed, f: take}
	if err := httpapi.Run(ctx, &t.rest.Engine, "log", values, nil, out.emit); err != nil {
		return false, err
	}
	return false, out.flush()
}

// next is what to ask for, and how many lines of the first record were shown already.
func (f *follower) next() (values url.Values, skip int) {
	values = url.Values{}
	for name, v := range f.values {
		values[name] = v
	}
	values.Set("positions", "true")
	values.Del("limit")
	after := f.position
	if f.offset > f.position {
		after, skip = f.offset-1, f.lines
	}
	if f.reached {
		values.Del("from")
	}
	values.Set("after", strconv.FormatUint(after, 10))
	return values, skip
}

// at takes a position: everything up to it was told, and should be seen now.
func (f *follower) at(line []byte) error {
	var p struct {
		Position uint64 `json:"position"`
	}
	if err := json.Unmarshal(line, &p); err != nil {
		return err
	}
	f.reached, f.position = true, max(f.position, p.Position)
	return f.flush()
}

// line shows a line, unless it was shown before.
func (f *follower) line(line []byte, skip *int) error {
	rest, ok := bytes.CutPrefix(line, []byte(`{"offset":`))
	number, _, _ := bytes.Cut(rest, []byte(","))
	offset, err := strconv.ParseUint(string(number), 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("a line that does not begin with its offset: %.100q", line)
	}
	if *skip > 0 && offset == f.offset {
		*skip--
		return nil
	}
	*skip = 0
	if offset != f.offset {
		f.offset, f.lines = offset, 0
	}
	f.lines++
	if err := f.show(line); err != nil {
		return err
	}
	if f.shown++; f.shown == f.limit {
		return errLimit
	}
	return nil
}
