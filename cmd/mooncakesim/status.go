package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// showStatus renews a line on a terminal every second. The function that it returns ends that and clears the line.
func showStatus(sim *mooncaketest.Sim, start time.Time, terminal io.Writer) (stop func()) {
	const clearLine = "\r\x1b[K"
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		var before uint64
		for {
			select {
			case <-done:
				fmt.Fprint(terminal, clearLine)
				return
			case <-ticker.C:
			}
			now := sim.Totals()
			var queued, live int
			sim.View(func(s *mooncaketest.Store, p *mooncaketest.Publisher) { queued, live = p.QueueLength(), s.Live() })
			fmt.Fprintf(terminal, "%s%.0f s: %d events (%d/s), %d dropped, %d queued, %d objects live", clearLine,
				time.Since(start).Seconds(), now.PublishedEvents, now.PublishedEvents-before, now.DroppedEvents, queued, live)
			before = now.PublishedEvents
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
