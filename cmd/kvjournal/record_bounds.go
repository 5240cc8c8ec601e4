package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/subscribe"
)

// bounds are what a publisher may make a recorder hold. What is refused is marked, counted and told.
type bounds struct {
	messageMiB int64
	events     int
	nativeMiB  int64
}

func (b *bounds) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&b.messageMiB, "max-message", 64, "MiB of the largest message taken; a larger one breaks the connection")
	maxEventsFlag(cmd, &b.events)
	cmd.Flags().Int64Var(&b.nativeMiB, "native-memory", recorder.DefaultNative>>20, "MiB that ZeroMQ and the databases may hold beside the buffer; a connection that\nmakes it more is broken")
}

// maxEventsFlag adds --max-events.
func maxEventsFlag(cmd *cobra.Command, n *int) {
	cmd.Flags().IntVar(n, "max-events", event.DefaultLimit, "events of the largest batch that is applied (a master sends 64 at most); a larger\none is kept raw and counts as damaged")
}

func (b *bounds) check() error {
	switch {
	case b.messageMiB < 1 || b.messageMiB > maxMessageMiB:
		return fmt.Errorf("--max-message %d: from 1 to %d MiB", b.messageMiB, maxMessageMiB)
	case b.nativeMiB < 300:
		return fmt.Errorf("--native-memory %d: at least 300 MiB, which the databases need", b.nativeMiB)
	}
	return checkMaxEvents(b.events)
}

// maxMessageMiB: a capture holds no larger frame.
const maxMessageMiB = 256

func checkMaxEvents(n int) error {
	if n < 64 {
		return fmt.Errorf("--max-events %d: at least 64, which a master sends", n)
	}
	return nil
}

func (b *bounds) options(buffer int64) recorder.Options {
	return recorder.Options{
		BufferBytes: buffer, MaxEvents: b.events, NativeBytes: b.nativeMiB << 20,
		Subscribe: subscribe.Options{MaxMessageSize: b.messageMiB << 20},
	}
}
