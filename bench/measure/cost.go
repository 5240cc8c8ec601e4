package measure

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cost is what a piece of work took.
type Cost struct {
	// Wall is the time that went by, CPU the processor time of the whole process meanwhile: on a busy machine it says more.
	Wall, CPU time.Duration
}

// Of measures f.
func Of(f func() error) (Cost, error) {
	begun, cpu := time.Now(), processorTime()
	err := f()
	return Cost{Wall: time.Since(begun), CPU: processorTime() - cpu}, err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMiB is the most memory that was resident in this process since the call before, in MiB; 0 where the system does not tell.
func PeakMiB() float64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	// The peak begins anew; where that is refused it goes on from the start of the process.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	for line := range strings.Lines(string(b)) {
		if peak, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(peak), "kB")), 64)
			if err == nil {
				return kib / 1024
			}
		}
	}
	return 0
}
