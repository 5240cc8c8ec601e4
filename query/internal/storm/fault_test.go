package storm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/kvjournal/kvjournal/journal/faultfs"
)

// patience bounds how long a life may take that met a fault.
const patience = 3 * time.Minute

var errnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EACCES, syscall.EMFILE}

// outcome is how a life ended that met a fault.
type outcome struct {
	fatal string // what Fatal was told, which ends the process
	err   error  // what it ended with
}

// TestEachFault makes the i-th operation of a run fail, for each i, and then of the next run, until there were as many faults as were asked
// for: once or from then on. The run may end with an error or by Fatal, each with a message that says what failed and where, or go on; it must
// not panic or hang. Then the directory opens, and all that was acknowledged is there.
func TestEachFault(t *testing.T) { eachFault(t, faults(t, points(t, usualPoints)), (*run).life) }

// TestEachFaultOfAnImport is TestEachFault with an import of the whole stream.
func TestEachFaultOfAnImport(t *testing.T) {
	eachFault(t, faults(t, max(10, points(t, usualPoints)/5)), (*run).importAll)
}

func eachFault(t *testing.T, todo int, live func(*run) error) {
	t.Helper()
	seed := firstSeed(t)
	if todo > faultsAProcess && os.Getenv("KVJOURNAL_FAULT") == "" {
		inProcesses(t, seed, todo)
		return
	}
	one := int64(-1) // KVJOURNAL_FAULT: this operation of the first run only
	if text := os.Getenv("KVJOURNAL_FAULT"); text != "" {
		var err error
		if one, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("KVJOURNAL_FAULT: %v", err)
		}
	}
	counts, begun, told := map[string]int{}, time.Now(), time.Now()
	for done := 0; done < todo && !t.Failed(); seed++ {
		total := allOperations(seed, live)
		every := max(1, total/int64(todo-done))
		i := int64(seed % uint64(every))
		if one >= 0 {
			i, todo = one, 1
		}
		for ; i < total && done < todo && !t.Failed(); i += every {
			how, fault, err := faultRun(seed, i, live)
			if err != nil {
				t.Errorf("KVJOURNAL_SEED=%d KVJOURNAL_FAULT=%d: %v: %v", seed, i, fault, err)
			}
			counts[how]++
			if done++; time.Since(told) > 10*time.Second {
				told = time.Now()
				t.Logf("%d of %d faults, %v", done, todo, time.Since(begun).Round(time.Second))
			}
		}
	}
	t.Logf("%d faults in %v: %v", todo, time.Since(begun).Round(time.Millisecond), counts)
}

// faultsAProcess is how many faults one process tries at most: what a process that told Fatal had open stays, since who told it never goes on.
const faultsAProcess = 500

// inProcesses runs the test in processes of its own with so many faults in all, as many at once as there are processors: a life waits more
// than it works.
func inProcesses(t *testing.T, seed uint64, todo int) {
	t.Helper()
	begun := time.Now()
	var group sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for done := 0; done < todo; done += faultsAProcess {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=0")
			cmd.Env = append(os.Environ(), fmt.Sprintf("KVJOURNAL_FAULTS=%d", min(faultsAProcess, todo-done)), fmt.Sprintf("KVJOURNAL_SEED=%d", seed+uint64(done)))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
			for _, l := range strings.Split(string(out), "\n") {
				if strings.Contains(l, " faults in ") {
					t.Logf("the faults from %d of %d on, %v: %s", done, todo, time.Since(begun).Round(time.Second), strings.TrimSpace(l))
				}
			}
		})
	}
	group.Wait()
}

// faults is how many faults a test tries.
func faults(t *testing.T, many int) int {
	if n, err := strconv.Atoi(os.Getenv("KVJOURNAL_FAULTS")); err == nil {
		return n
	}
	return many
}

// faultRun lives a life in which operation i fails, and looks at what it left.
func faultRun(seed uint64, i int64, live func(*run) error) (how string, fault *faultfs.Nth, err error) {
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	fault = &faultfs.Nth{N: i, All: rng.IntN(2) == 0, Err: errnos[rng.IntN(len(errnos))], Skip: above}
	mem := faultfs.NewCrashable()
	end, r, err := lifeOf(seed, mem, fault, live)
	if err != nil {
		fault.Freeze()
		return "hung", fault, err
	}
	acked, _ := r.standing()
	percent := []int{100, 100, 0, 50}[rng.IntN(4)] // 100: only the process ended
	clone := mem.Clone(rng, percent)
	_, all := r.standing()
	fault.Freeze()
	how, said, err := judge(end, fault)
	if err != nil {
		return how, fault, err
	}
	checker := newRun(seed, nil, func(m string) { panic("the storage told Fatal: " + m) })
	if err := checker.left(clone, acked, all); err != nil {
		return how, fault, fmt.Errorf("it ended with %q; %d %% of what was not synced is kept: %w", said, percent, err)
	}
	return how, fault, nil
}

// above skips what may fail unnoticed where it is not permitted: a directory above the data that may be passed but not read cannot be synced, so
// that a loss of power may take the data directory itself.
func above(op errorfs.Op) bool {
	return op.Path == "/" && (op.Kind == errorfs.OpOpenDir || op.Kind == errorfs.OpFileSync)
}

// judge says how a life ended, and what is wrong with that.
func judge(end outcome, fault *faultfs.Nth) (how, said string, err error) {
	how, said = "went on", end.fatal
	switch {
	case end.fatal != "":
		how = "fatal"
	case end.err != nil:
		how, said = "error", end.err.Error()
	}
	path, failed := fault.Failed()
	named := strings.Contains(said, path) || fault.All && strings.Contains(said, dir) // of several failures
	if how != "went on" && (!failed || !strings.Contains(said, fault.Err.Error()) || !named) {
		return how, said, fmt.Errorf("the message does not say what failed, and where: %s", said)
	}
	if strings.Contains(said, "WRONG") || strings.Contains(said, "LOST") {
		return how, said, errors.New(said)
	}
	return how, said, nil
}

// lifeOf lives until it ends or Fatal is told. Who tells Fatal never goes on, as in a process that ends there.
func lifeOf(seed uint64, mem vfs.FS, fault *faultfs.Nth, live func(*run) error) (outcome, *run, error) {
	ends := make(chan outcome, 100)
	r := newRun(seed, errorfs.Wrap(mem, fault), func(m string) {
		ends <- outcome{fatal: m}
		select {}
	})
	if err := r.writeCapture(mem); err != nil {
		return outcome{}, r, err
	}
	go func() { ends <- outcome{err: live(r)} }()
	select {
	case end := <-ends:
		return end, r, nil
	case <-time.After(patience):
		return outcome{}, r, errors.New("it hangs")
	}
}

// allOperations counts about how many file operations a run makes, those that only read too.
func allOperations(seed uint64, live func(*run) error) int64 {
	counter, mem := &faultfs.Nth{N: -1, Skip: above}, faultfs.NewCrashable()
	r := newRun(seed, errorfs.Wrap(mem, counter), nil)
	_ = r.writeCapture(mem)
	_ = live(r)
	return max(counter.Ops(), 1)
}
