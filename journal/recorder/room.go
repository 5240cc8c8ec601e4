package recorder

import (
	"context"
	"errors"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
)

// ErrPaused: nothing is recorded until there is room on the disk.
var ErrPaused = errors.New("recording is paused: there is too little room on the disk")

// Room says when recording pauses for want of room.
//
// A recorder that pauses ends as one that is stopped (what was received is durable, its sockets are closed) and begins as one that is started: so
// what is lost meanwhile is recorder_down, with the marks of R5. The room that it leaves is for what goes on: the index, compactions,
// and the answers.
type Room struct {
	// Least is how many bytes must be free. 0: recording never pauses.
	Least uint64
	// Free tells how many are.
	Free func() (uint64, error)
	// Every is how often it is asked. 0: 1 s.
	Every time.Duration
}

func (o Room) withDefaults() Room {
	if o.Every == 0 {
		o.Every = time.Second
	}
	if o.Free == nil {
		o.Least = 0
	}
	return o
}

// short decides: below the least it is, and stays so until there is a tenth more.
func short(free, least uint64, was bool) bool {
	if was {
		return free < least+least/10
	}
	return free < least
}

// Pause is a pause for want of room.
type Pause struct {
	Since       time.Time
	Free, Least uint64 // bytes; Free as last asked
}

// Paused returns the pause that recording is in, nil: none.
func (r *Recorder) Paused() *Pause { return r.paused.Load() }

// look asks for the room, and says whether it is short. Where that cannot be told it is as it was.
func (r *Recorder) look(was bool) bool {
	if r.room.Least == 0 {
		return false
	}
	free, err := r.room.Free()
	if err != nil {
		if r.troubled != err.Error() {
			r.troubled = err.Error()
			r.log.Error("how much room is on the disk cannot be told; recording goes on as it is", "error", err)
		}
		return was
	}
	is := short(free, r.room.Least, was)
	switch now := r.paused.Load(); {
	case is && now == nil:
		r.paused.Store(&Pause{time.Now(), free, r.room.Least})
		r.log.Error("recording pauses: there is too little room on the disk; what is lost until it goes on is listed by gaps as recorder_down",
			"free_bytes", free, "min_free_bytes", r.room.Least, "what_to_do", "free space on the disk, or lower --min-free; it goes on by itself")
	case is:
		r.paused.Store(&Pause{now.Since, free, r.room.Least})
	case now != nil:
		r.paused.Store(nil)
		r.log.Warn("recording goes on", "free_bytes", free, "paused", time.Since(now.Since).Round(time.Millisecond))
	}
	return is
}

// awaitRoom returns when there is room, or with ctx's error.
func (r *Recorder) awaitRoom(ctx context.Context) error {
	for was := r.paused.Load() != nil; r.look(was); was = true {
		if err := pause.For(ctx, r.room.Every); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// watchRoom calls stop when the room becomes short, and ends with ctx.
func (r *Recorder) watchRoom(ctx context.Context, stop func()) {
	for r.room.Least > 0 && pause.For(ctx, r.room.Every) == nil {
		if r.look(false) {
			stop()
			return
		}
	}
}
