package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/journal/subscribe"
)

// bounds are what a publisher may make a recorder hold. What is refused is marked, counted and told.
type bounds struct {
	messageMiB int64
	events     int
	nativeMiB  int64
	objectsMiB int64
}

func (b *bounds) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&b.messageMiB, "max-message", 64, "MiB of the largest message taken; a larger one breaks the connection")
	maxEventsFlag(cmd, &b.events)
	cmd.Flags().Int64Var(&b.nativeMiB, "native-memory", recorder.DefaultNative>>20, "MiB that ZeroMQ and the databases may hold beside the buffer; a connection that\nmakes it more is broken")
	cmd.Flags().Int64Var(&b.objectsMiB, "object-cache", index.DefaultObjectCache>>20, "MiB of objects that were asked for lately, to find them again at once: 112 hold a\nmillion of them; 0: none")
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
	case b.objectsMiB < 0 || b.objectsMiB > maxObjectsMiB:
		return fmt.Errorf("--object-cache %d: from 0 to %d MiB", b.objectsMiB, maxObjectsMiB)
	}
	return checkMaxEvents(b.events)
}

// maxMessageMiB: a capture holds no larger frame.
const maxMessageMiB = 256

// maxObjectsMiB is more than any machine has.
const maxObjectsMiB = 1 << 24

// objectCache is the bound of index.Options.
func (b *bounds) objectCache() int64 {
	if b.objectsMiB == 0 {
		return -1
	}
	return b.objectsMiB << 20
}

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
