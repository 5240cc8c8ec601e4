package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
	"github.com/kvjournal/kvjournal/query/httpapi"
)

// passer hands requests to the recorder of a directory. A recorder that gives no sign of life is not waited for: whoever waits for the first
// of an answer is told so within patience, and who asks then within a part of it, until it answers again. An answer that has begun is left
// to take its time.
//
//	        answers                          silent
//	passed ────────▶ the recorder's answer   ┌──────▶ refused, until it gives a sign
//	   └─── nothing for patience/2 ──▶ a sign of life, for patience/2 ──yes──▶ waited for on
type passer struct {
	log      *slog.Logger
	patience time.Duration
	// silent is what was told last of a recorder that gave no sign; nil: it answered since.
	silent atomic.Pointer[SilentError]
}

// askAgain is which part of patience a recorder has for a sign of life that gave none before.
const askAgain = 10

// errGivenUp is of an answer that came when it had been said that none does.
var errGivenUp = errors.New("it was given up")

// pass hands a request to the recorder that listens on a socket; who is as the directory's claim has it.
func (p *passer) pass(w http.ResponseWriter, r *http.Request, socket, who string) {
	c := httpapi.NewClient(socket)
	defer c.Close()
	if told := p.silent.Load(); told != nil {
		var silent *SilentError
		err := SignOfLife(r.Context(), c, who, p.patience/askAgain)
		if r.Context().Err() != nil {
			return // whoever asked went away
		}
		if errors.As(err, &silent) {
			httpapi.Unavailable(w, r, &SilentError{who, told.Patience})
			return
		}
		p.silent.Store(nil)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	var decided atomic.Bool // the answer began, or was given up
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		for pause.For(ctx, p.patience/2) == nil && !decided.Load() {
			var silent *SilentError
			if err := SignOfLife(ctx, c, who, p.patience/2); errors.As(err, &silent) && decided.CompareAndSwap(false, true) {
				silent.Patience = p.patience
				p.silent.Store(silent)
				cancel(silent)
			}
		}
	})
	transport := httpapi.SocketTransport(socket)
	transport.DisableKeepAlives = true
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "kvjournal"
			p.Out.Header.Del("Authorization")
			p.Out.Header.Del("Accept-Encoding")
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
		ModifyResponse: func(*http.Response) error {
			if !decided.CompareAndSwap(false, true) {
				return errGivenUp
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var silent *SilentError
			if errors.As(context.Cause(ctx), &silent) {
				err = silent
			} else {
				err = fmt.Errorf("the recorder of this directory ended or does not answer; ask again (%w)", err)
			}
			httpapi.Unavailable(w, r, err)
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}
