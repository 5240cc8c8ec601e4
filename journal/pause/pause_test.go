package pause

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	if err := For(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	if err := For(t.Context(), -1); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, d := range []time.Duration{0, time.Hour} {
		if err := For(ended, d); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", d, err)
		}
	}
	ending, end := context.WithCancel(t.Context())
	go end()
	if err := For(ending, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
