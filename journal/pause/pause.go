// Package pause waits, and gives up when it is told to: for loops that look again and again for something that nobody announces.
package pause

import (
	"context"
	"time"
)

// For returns after d, or with ctx's error when ctx ends; at once where it has ended.
func For(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
