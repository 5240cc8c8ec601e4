package recorder

import (
	"context"
	"fmt"
	"time"

	"github.com/kvjournal/kvjournal/journal/subscribe"
)

const (
	// DefaultNative bounds what the process may hold outside Go's heap. The databases of a recorder hold some 250 MiB at most, and libzmq
	// 64 MiB of a usual socket.
	DefaultNative = 768 << 20
	// nativeEvery is the time between two looks: over a local socket half a GB comes in it.
	nativeEvery = 250 * time.Millisecond
	// nativePatience is how long breaking one connection is given to help before the next is broken.
	nativePatience = time.Second
)

// watchNative bounds what libzmq holds. It has no bound of its own in bytes: it queues a number of messages, each of any number of
// frames, and gives a message out when it is whole. So a publisher that sends a message without end would take all memory. Where there
// is too much, the connection is broken that gave no message for longest; then the next.
func (r *Recorder) watchNative(ctx context.Context, most int64) {
	t := time.NewTicker(nativeEvery)
	defer t.Stop()
	var broke time.Time
	trim := false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			held := subscribe.NativeBytes()
			if held <= most && trim {
				trim = false
				subscribe.TrimNative()
			}
			if held <= most || now.Sub(broke) < nativePatience {
				continue
			}
			broke, trim = now, true
			all := r.Status()
			if i := suspect(all); i >= 0 {
				r.now.Load().subs[i].GiveUp(fmt.Errorf("connection given up: %d MiB are held outside Go's heap, at most %d may be (--native-memory): a message without end, or more of large ones than can be written",
					held>>20, most>>20))
			}
		}
	}
}

// suspect is the number of the socket whose connection gave no message for longest, -1 where none stands.
func suspect(all []subscribe.Status) int {
	which := -1
	for i := range all {
		if all[i].Connected && (which < 0 || quietSince(&all[i]).Before(quietSince(&all[which]))) {
			which = i
		}
	}
	return which
}

func quietSince(s *subscribe.Status) time.Time {
	if s.LastMessage.After(s.Since) {
		return s.LastMessage
	}
	return s.Since
}
