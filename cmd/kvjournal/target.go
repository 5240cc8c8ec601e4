package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/query"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

// target is a data directory that questions go to: a running recorder's, by its socket, or one at rest. The
// answers are the same.
type target struct {
	dir  string
	live *httpapi.Client
	rest *service.AtRest
}

// startPatience is how long a command waits for a recorder that has claimed the directory to listen.
const startPatience = 5 * time.Second

// socketPatience is how long it looks for the socket before it looks whether the writer is still there.
const socketPatience = 200 * time.Millisecond

// openTarget finds out which it is, also while a recorder starts or ends.
func openTarget(ctx context.Context, dir string) (*target, error) {
	return openTargetBy(ctx, dir, service.OpenAtRest, "bringing the index up")
}

// openTargetBy is openTarget where open is how a directory at rest is opened, and what says what may take long about it.
func openTargetBy(ctx context.Context, dir string, open func(context.Context, string, service.Options) (*service.AtRest, error), what string) (*target, error) {
	for deadline := time.Now().Add(startPatience); ; {
		rest, err := open(ctx, dir, service.Options{Log: warnings(), Progress: progressOn(os.Stderr, what)})
		if err == nil {
			return &target{dir: dir, rest: rest}, nil
		}
		var live *service.LiveError
		if !errors.As(err, &live) {
			return nil, err
		}
		recorder, err := clientOf(ctx, dir, live, socketPatience)
		if err == nil {
			return &target{dir: dir, live: recorder}, nil
		}
		if silent := (*service.SilentError)(nil); errors.As(err, &silent) {
			return nil, err
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, fmt.Errorf("%w (%w)", live, err)
		}
	}
}

// recorderOf is the recorder that a command met which began on the directory at rest.
func recorderOf(ctx context.Context, dir string, live *service.LiveError) (*httpapi.Client, error) {
	recorder, err := clientOf(ctx, dir, live, startPatience)
	if silent := (*service.SilentError)(nil); err != nil && !errors.As(err, &silent) {
		return nil, fmt.Errorf("%w (%w)", live, err)
	}
	return recorder, err
}

// clientOf returns a client of the recorder that has the directory, which has given a sign of life; patience is for its socket.
func clientOf(ctx context.Context, dir string, live *service.LiveError, patience time.Duration) (*httpapi.Client, error) {
	socket, err := service.FindSocket(ctx, dir, patience)
	if err != nil {
		return nil, err
	}
	c := httpapi.NewClient(socket)
	if err := service.SignOfLife(ctx, c, live.Who, service.SignPatience); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (t *target) Close() error {
	if t.live != nil {
		t.live.Close()
	}
	if t.rest != nil {
		return t.rest.Close()
	}
	return nil
}

// printAnswer opens the directory, asks, and prints each JSON line as it is, or, for people, through table: show is given each
// line, end is called behind the last.
func printAnswer(cmd *cobra.Command, dir, output string, table func(printer) (show func([]byte) error, end func()), ask func(t *target, show func([]byte) error) error) (err error) {
	if err := checkOutput(output); err != nil {
		return err
	}
	t, err := openTarget(cmd.Context(), dir)
	if err != nil {
		return err
	}
	defer t.Close()
	out := newPrinter(cmd.OutOrStdout())
	defer func() { err = errors.Join(err, out.Flush()) }()
	show, end := out.line, func() {}
	if output == "table" {
		show, end = table(out)
	}
	prompt := startPrompt(out)
	err = ask(t, prompt.wrap(show))
	prompt.stop()
	if err != nil {
		return err
	}
	end()
	return nil
}

// promptEvery is how long a line waits at most for others to be written with it.
const promptEvery = 100 * time.Millisecond

// prompt writes out what stands in a printer's buffer: the first line at once, so that whoever reads need not wait for the end,
// and the others soon. Live and at rest, lines come with pauses of any length between them.
type prompt struct {
	mu         sync.Mutex
	out        printer
	begun      bool
	done, over chan struct{}
}

func startPrompt(out printer) *prompt {
	p := &prompt{out: out, done: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		tick := time.NewTicker(promptEvery)
		defer tick.Stop()
		for {
			select {
			case <-p.done:
				return
			case <-tick.C:
				p.mu.Lock()
				_ = p.out.Flush() // the buffer keeps the error: the next line gets it
				p.mu.Unlock()
			}
		}
	}()
	return p
}

// wrap returns show, to be called before stop.
func (p *prompt) wrap(show func([]byte) error) func([]byte) error {
	return func(line []byte) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if err := show(line); err != nil || p.begun {
			return err
		}
		p.begun = true
		return p.out.Flush()
	}
}

// stop ends it; the printer is the caller's again.
func (p *prompt) stop() {
	close(p.done)
	<-p.over
}

// ask asks a question, and asks anew where the recorder ended before it said anything: then the directory is at rest, or
// another recorder's.
func (t *target) ask(ctx context.Context, f func([]byte) error, question func(f func([]byte) error) error) error {
	healed := false
	for deadline := time.Now().Add(startPatience); ; {
		said := false
		err := question(func(line []byte) error {
			said = true
			return f(line)
		})
		if t.rest != nil && index.Damage(err) {
			if said || healed {
				return fmt.Errorf("the index is damaged, `kvjournal rebuild` computes it anew: %w", err)
			}
			healed = true
			if err := t.heal(ctx, err); err != nil {
				return err
			}
			continue
		}
		var gone *httpapi.GoneError
		if !errors.As(err, &gone) || said || time.Now().After(deadline) {
			return err
		}
		next, err := openTarget(ctx, t.dir)
		if err != nil {
			return err
		}
		*t = *next
	}
}

// heal opens a directory at rest again, its index computed anew. The journal stays as it is.
func (t *target) heal(ctx context.Context, why error) error {
	warnings().Warn("the index is damaged; it is computed anew from the journal", "why", why.Error())
	_ = t.rest.Close() // what a damaged one says at its end is no news
	t.rest = nil
	next, err := openTargetBy(ctx, t.dir, service.HealAtRest, "rebuilding the index")
	if err != nil {
		return fmt.Errorf("the index is damaged (%w) and cannot be computed anew: %w", why, err)
	}
	*t = *next
	return nil
}

// lookup calls f with each answer's JSON, in order.
func (t *target) lookup(ctx context.Context, questions []query.Question, at string, f func([]byte) error) error {
	return t.ask(ctx, f, func(f func([]byte) error) error { return t.lookupOnce(ctx, questions, at, f) })
}

func (t *target) lookupOnce(ctx context.Context, questions []query.Question, at string, f func([]byte) error) error {
	if t.live != nil {
		return t.live.Lookup(ctx, questions, at, f)
	}
	w, err := query.ParseWhen(at, time.Now())
	if err != nil {
		return err
	}
	answers, err := t.rest.Lookup(ctx, questions, w)
	if err == nil {
		err = t.undisturbed()
	}
	if err != nil {
		return err
	}
	for _, a := range answers {
		if err := emit(a, f); err != nil {
			return err
		}
	}
	return nil
}

func emit(v any, f func([]byte) error) error {
	b, err := query.AppendJSON(nil, v)
	if err != nil {
		return err
	}
	return f(b)
}

// question asks one of httpapi's questions and calls f with each line's JSON. On a terminal, what says what is being done where it
// takes long.
func (t *target) question(ctx context.Context, name string, values url.Values, what string, f func([]byte) error) error {
	progress := query.Progress(progressOn(os.Stderr, what))
	return t.ask(ctx, f, func(f func([]byte) error) error {
		if t.live != nil {
			return t.live.Ask(ctx, name, values, progress, f)
		}
		out := guarded{check: t.undisturbed, f: f}
		if err := httpapi.Run(ctx, &t.rest.Engine, name, values, progress, out.emit); err != nil {
			return err
		}
		return out.flush()
	})
}

// guarded holds lines back until it is sure that no writer came while they were read.
type guarded struct {
	check func() error
	f     func([]byte) error
	held  []byte
	ends  []int
}

// guardBytes is how much is held back.
const guardBytes = 256 << 10

func (g *guarded) emit(v any) error {
	if v == httpapi.Flush {
		return g.flush()
	}
	var err error
	if g.held, err = query.AppendJSON(g.held, v); err != nil {
		return err
	}
	g.ends = append(g.ends, len(g.held))
	if len(g.held) >= guardBytes {
		return g.flush()
	}
	return nil
}

func (g *guarded) flush() error {
	if err := g.check(); err != nil {
		return err
	}
	begin := 0
	for _, end := range g.ends {
		if err := g.f(g.held[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	g.held, g.ends = g.held[:0], g.ends[:0]
	return nil
}

func (t *target) stats(ctx context.Context, f func([]byte) error) error {
	return t.ask(ctx, f, func(f func([]byte) error) error { return t.statsOnce(ctx, f) })
}

func (t *target) statsOnce(ctx context.Context, f func([]byte) error) error {
	if t.live != nil {
		return t.live.Stats(ctx, f)
	}
	st, err := t.rest.Stats(ctx)
	if err == nil {
		err = t.undisturbed()
	}
	if err != nil {
		return err
	}
	return emit(st, f)
}

// undisturbed looks whether a writer came while the directory was read.
func (t *target) undisturbed() error {
	if err := t.rest.Undisturbed(); err != nil {
		return fmt.Errorf("a recorder started while this was read; ask again, it will answer (%w)", err)
	}
	return nil
}

// dirFlag adds --dir, and --config, which can name it.
func dirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "kvjournal-data", "data directory (environment: "+envName("dir")+")")
	configFlag(cmd)
}

// outputFlag adds --output.
func outputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVar(output, "output", "table", "table, or json: one compact JSON value a line")
}

func checkOutput(output string) error {
	if output != "table" && output != "json" {
		return usageError(fmt.Errorf("--output %q: use table or json", output))
	}
	return nil
}

// warnings is the log of commands that are no service: warnings and errors, on stderr.
func warnings() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
