package mooncake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentListing: a listing that does not go on is given up, whether a part of it came or not, long before one that comes slowly.
func TestSilentListing(t *testing.T) {
	for _, body := range []string{"", "a\nb\n"} {
		c := serve(t, hanging(body), Options{Timeouts: Timeouts{Silence: 30 * time.Millisecond, Keys: time.Hour}})
		var late *TimeoutError
		if _, err := c.Keys(t.Context(), func([]byte) error { return nil }); !errors.As(err, &late) || !late.Silent || late.Bytes != int64(len(body)) {
			t.Errorf("after %q: %v", body, err)
		}
		if d, _ := c.pacer.backoff(KindKeys, c.options.Clock.Now()); d == 0 {
			t.Error("no backoff after a silent listing")
		}
	}
}

// TestEndIfSilent: what goes on is not given up.
func TestEndIfSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, heard, done := endIfSilent(t.Context(), time.Minute)
		defer done()
		for range 10 {
			time.Sleep(59 * time.Second)
			heard()
		}
		if ctx.Err() != nil {
			t.Fatalf("given up though something came each 59 s: %v", context.Cause(ctx))
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errSilent) {
			t.Errorf("61 s of silence: %v", context.Cause(ctx))
		}
	})
}
