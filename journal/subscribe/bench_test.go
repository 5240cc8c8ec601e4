package subscribe

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/capture"
)

// BenchmarkSubscriber receives from a publisher in a process of its own that waits instead of dropping, so the slower of
// the two sets the pace. Run it on one core with: go test -c && taskset -c 0 ./subscribe.test -test.run xxx -test.bench Subscriber
// cpu-ns/msg is this process's CPU time: receiving, copying, buffering, collecting garbage, and libzmq's own thread.
func BenchmarkSubscriber(b *testing.B) {
	for _, size := range []int{500, 28 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			p := startPublisher(b, anyPort, 1, uint64(b.N), size, 0, true)
			zctx := newContext(b)
			buf := NewBuffer(64 << 20)
			sub, err := New(zctx, buf, Options{Endpoint: p.endpoint, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				if err := sub.Run(ctx); err != nil {
					b.Error(err)
				}
				buf.Close()
			}()
			b.SetBytes(int64(size))
			b.ReportAllocs()
			var messages int
			var started time.Time
			var cpu time.Duration
			for messages < b.N {
				items, err := buf.Pop(context.Background(), 1<<20)
				if err != nil {
					b.Fatal(err)
				}
				if messages == 0 {
					started, cpu = time.Now(), cpuTime()
					b.ResetTimer()
				}
				for _, it := range items {
					if it.Kind == capture.Message {
						messages++
					}
				}
			}
			b.ReportMetric(float64(messages)/time.Since(started).Seconds(), "msg/s")
			b.ReportMetric(float64(cpuTime()-cpu)/float64(messages), "cpu-ns/msg")
			b.StopTimer()
			if st := sub.Status(); st.Messages != uint64(b.N) || st.Stalls != 0 {
				b.Logf("%+v", st)
			}
			cancel()
			for err = nil; err != io.EOF; {
				_, err = buf.Pop(context.Background(), 1<<30)
			}
		})
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
