package mooncake

import (
	"fmt"
	"time"
)

// StandbyError: the master is there and is not the leader, or not ready to serve yet. Nothing is wrong with it. Another
// master of the group answers, or this one does after the next election.
type StandbyError struct {
	URL     string
	Message string // the master's words
}

func (e *StandbyError) Error() string {
	return fmt.Sprintf("GET %s: a standby: %q; ask the leader of its group, or wait until this one leads", e.URL, e.Message)
}

// BrokenReplyError: something answered, and not as a master does: another status, a page, cut or unexpected content, more
// bytes than the limits allow.
type BrokenReplyError struct {
	URL     string
	Status  int    // of HTTP; 0 where the reply was not even HTTP
	What    string // what is wrong
	Cut     bool   // the reply ended too early
	Excerpt string // the first bytes of the body, if any
	Next    string // what to do

	refused bool // the master may have stumbled over a key of the call
}

func (e *BrokenReplyError) Error() string {
	s := fmt.Sprintf("GET %s: no master's reply: ", e.URL)
	if e.Status != 0 {
		s += fmt.Sprintf("status %d, ", e.Status)
	}
	s += e.What
	if e.Excerpt != "" {
		s += fmt.Sprintf(" (it begins %q)", e.Excerpt)
	}
	return s + "; " + e.Next
}

// DeniedError: the other end wants a token, or another one (401, 403).
type DeniedError struct {
	URL    string
	Status int
	Sent   bool // a token was sent
}

func (e *DeniedError) Error() string {
	if e.Sent {
		return fmt.Sprintf("GET %s: status %d: the token was not accepted; check the token of this master", e.URL, e.Status)
	}
	return fmt.Sprintf("GET %s: status %d: it wants a token; give the token of this master", e.URL, e.Status)
}

// UnreachableError: no connection, or one that broke before any byte of a reply came. The master did no work.
type UnreachableError struct {
	URL  string
	Err  error
	Next string // what to do
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("GET %s: unreachable: %v; %s", e.URL, e.Err, e.Next)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// TimeoutError: the call was not answered in time, by the client's own timeout or the caller's deadline.
type TimeoutError struct {
	URL   string
	After time.Duration
	Bytes int64 // of the reply that had come
	// Silent: a listing did not go on for Timeouts.Silence.
	Silent bool
	Err    error // context.DeadlineExceeded
}

func (e *TimeoutError) Error() string {
	if e.Bytes > 0 && e.Silent {
		return fmt.Sprintf("GET %s: timeout: the reply stopped after %d bytes, and was given up after %v; see whether the master hangs", e.URL, e.Bytes, e.After.Round(time.Millisecond))
	}
	if e.Bytes > 0 {
		return fmt.Sprintf("GET %s: timeout: after %v the reply was still coming, %d bytes so far; raise the timeout, or ask when the master is less busy",
			e.URL, e.After.Round(time.Millisecond), e.Bytes)
	}
	return fmt.Sprintf("GET %s: timeout: no reply after %v; see whether the master hangs, else raise the timeout", e.URL, e.After.Round(time.Millisecond))
}

func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout says yes, as in net.Error.
func (e *TimeoutError) Timeout() bool { return true }

// broken is an error that reply fills in: where and what came.
func broken(format string, args ...any) *BrokenReplyError {
	return &BrokenReplyError{What: fmt.Sprintf(format, args...)}
}

// callerError carries an error of the caller's own function through the call, unchanged.
type callerError struct{ error }
