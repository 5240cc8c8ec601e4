package storm

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
)

// usualPoints is how many are tried by `make test`.
const usualPoints = 60

// TestCrashPoints takes the power away at every write, sync and rename of a run, and of the next run, until there were as many points as
// were asked for.
func TestCrashPoints(t *testing.T) {
	seed, todo := firstSeed(t), points(t, usualPoints)
	begun, told := time.Now(), time.Now()
	for done := 0; done < todo && !t.Failed(); seed++ {
		n, err := crashRun(seed, todo-done)
		if err != nil {
			t.Errorf("repeat with KVJOURNAL_SEED=%d: %v", seed, err)
		}
		if n == 0 {
			t.Fatalf("seed %d: no point", seed)
		}
		if done += n; time.Since(told) > 10*time.Second {
			told = time.Now()
			t.Logf("%d of %d crashes, %v", done, todo, time.Since(begun).Round(time.Second))
		}
	}
	t.Logf("%d crashes in %v", todo, time.Since(begun).Round(time.Millisecond))
}

// crashRun makes a run with up to most crashes, spread over it: each before an operation that changes something.
func crashRun(seed uint64, most int) (points int, err error) {
	var mu sync.Mutex
	var r *run
	mem := faultfs.NewCrashable()
	rng := rand.New(rand.NewPCG(seed, 5))
	total, every := operations(seed), int64(1)
	if int64(most) < total {
		every = total / int64(most)
	}
	phase := rng.Int64N(every)
	at := func(n int64, op errorfs.Op) {
		mu.Lock() // one crash at a time
		defer mu.Unlock()
		if n%every != phase || err != nil || points == most {
			return
		}
		points++
		percent := []int{0, 0, 30, 70, 100}[rng.IntN(5)]
		acked, _ := r.standing()
		clone := mem.Clone(rng, percent)
		_, all := r.standing()
		if lerr := r.left(clone, acked, all); lerr != nil {
			err = fmt.Errorf("crash before operation %d (kind %d) of %s, %d %% of what was not synced is kept: %w", n, op.Kind, op.Path, percent, lerr)
		}
	}
	r = newRun(seed, faultfs.Points(mem, at), func(m string) { panic("the storage told Fatal: " + m) })
	lerr := r.life()
	mu.Lock()
	defer mu.Unlock()
	if err == nil && lerr != nil {
		err = fmt.Errorf("the run itself: %w", lerr)
	}
	return points, err
}

// operations counts about how many operations of a run change something.
func operations(seed uint64) int64 {
	var mu sync.Mutex
	var total int64
	fs := faultfs.Points(faultfs.NewCrashable(), func(n int64, _ errorfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		total = max(total, n+1)
	})
	_ = newRun(seed, fs, nil).life() // what is wrong with it is found by the run with crashes
	mu.Lock()
	defer mu.Unlock()
	return max(total, 1)
}
