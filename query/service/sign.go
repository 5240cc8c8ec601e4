package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/query/httpapi"
)

// SignPatience is how long a recorder may take for a sign of life. What it is asked then may take any time.
const SignPatience = 10 * time.Second

// SilentError: a recorder has the directory, and does not answer.
type SilentError struct {
	Who      string // as the directory's claim has it: command, process and since when
	Patience time.Duration
}

func (e *SilentError) Error() string {
	return fmt.Sprintf("the recorder (%s) does not answer: it gave no sign of life for %v. Look at that process and at its log; "+
		"if it is stopped (state T in `ps`), kill -CONT lets it go on; if it hangs, restart it: nothing that is durable is lost", e.Who, e.Patience)
}

// SignOfLife waits until the recorder behind a socket answers anything at all; a *SilentError where it does not within patience, a
// *httpapi.GoneError where it ended. Any answer is a sign, also one that refuses.
func SignOfLife(ctx context.Context, c *httpapi.Client, who string, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := c.Alive(waiting)
	var gone *httpapi.GoneError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case waiting.Err() != nil:
		return &SilentError{who, patience}
	case errors.As(err, &gone):
		return err
	}
	return nil
}
