package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// profileFlags adds the hidden flags that measure a command: --cpu-profile FILE, for `go tool pprof`, --heap-profile FILE, which SIGUSR1 writes
// while it runs, and --resources, which says at the end how long it took and what it used.
func profileFlags(root *cobra.Command) {
	var path, heap string
	var resources bool
	begun := time.Now()
	flags := root.PersistentFlags()
	flags.StringVar(&path, "cpu-profile", "", "write a CPU profile of this run to a file")
	flags.StringVar(&heap, "heap-profile", "", "write a profile of the heap to a file, and the runtime's figures behind its name + .txt, at each SIGUSR1")
	flags.BoolVar(&resources, "resources", false, "say at the end how long this run took, and what it used")
	for _, name := range []string{"cpu-profile", "heap-profile", "resources"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err) // the flag was made a few lines above
		}
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if heap != "" {
			heapProfiles(cmd.Context(), heap)
		}
		if path == "" {
			return nil
		}
		f, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("--cpu-profile: %w", err)
		}
		return pprof.StartCPUProfile(f)
	}
	root.PersistentPostRun = func(*cobra.Command, []string) {
		pprof.StopCPUProfile()
		if resources {
			fmt.Fprintln(os.Stderr, used(time.Since(begun)))
		}
	}
}

// heapProfiles writes a profile of the heap at each SIGUSR1, until ctx ends.
func heapProfiles(ctx context.Context, path string) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		defer signal.Stop(asked)
		for {
			select {
			case <-ctx.Done():
				return
			case <-asked:
			}
			if err := heapProfile(path); err != nil {
				fmt.Fprintln(os.Stderr, "--heap-profile:", err)
			}
		}
	}()
}

// heapProfile writes what is alive, and in a file beside it how much the runtime holds for it.
func heapProfile(path string) error {
	runtime.GC()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(pprof.WriteHeapProfile(f), f.Close()); err != nil {
		return err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	text := fmt.Sprintf("heap_alloc %d heap_inuse %d heap_idle %d heap_released %d stack_inuse %d sys %d goroutines %d\n",
		m.HeapAlloc, m.HeapInuse, m.HeapIdle, m.HeapReleased, m.StackInuse, m.Sys, runtime.NumGoroutine())
	return os.WriteFile(path+".txt", []byte(text), 0o600) // last: who waits for it finds both
}

// used says what the process took of the machine.
func used(wall time.Duration) string {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err.Error()
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return fmt.Sprintf("took_ms %d cpu_ms %d resident_mib %d", wall.Milliseconds(), cpu.Milliseconds(), u.Maxrss/1024)
}
