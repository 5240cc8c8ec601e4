package query

import "github.com/kvjournal/kvjournal/journal/continuity"

// causeText tells of one cause of doubt.
type causeText struct {
	// what happened, a sentence.
	what string
	// present and absent end "it may be otherwise if …", where the last known state is that.
	present, absent string
	// do says what to do about it, a sentence; "" where there is nothing.
	do string
}

// lossEndings are the endings where events were lost.
func lossEndings(of string) (present, absent string) {
	return of + " removed it or cleared its scope", of + " stored it"
}

func lossText(what, of, do string) causeText {
	present, absent := lossEndings(of)
	return causeText{what, present, absent, do}
}

// causeTexts has one for every cause that an answer's doubt can have: those of marks, and the Doubt constants.
var causeTexts = map[string]causeText{
	continuity.PublisherQueue.String(): lossText("The publisher's own queue overflowed, and it dropped its oldest events.",
		"one of the events that the publisher dropped",
		"If this comes again, make the publisher's event queue larger, or find out what held its sending back: it drops when changes come faster than it sends for longer than the queue holds."),
	continuity.Transport.String(): lossText("Messages vanished between the publisher's socket and ours, as at a ZMQ high-water mark.",
		"one of the events in the messages that vanished",
		"If this comes again, raise the publisher's ZMQ send high-water mark (10,000 messages, dropped silently beyond), and look whether the network or the recorder's machine was too slow at that time."),
	continuity.RecorderSlow.String(): lossText("Messages vanished while kvjournal's own buffer was full: its disk was too slow.",
		"one of the events in the messages that vanished",
		"Give the data directory a faster disk, or the recorder a larger buffer (`kvjournal record --buffer MIB`)."),
	continuity.PublisherRestart.String(): {"Another publisher process began: its numbers start over. Nothing announces what became of the objects that the one before held.",
		"the object was lost with the old process, or the new one dropped it before it announced anything about it", "the new process took it over or stored it before its first message that was seen",
		"Look in the master's log for why it started anew."},
	continuity.LateJoin.String(): lossText("The recorder joined a stream that ran already; what came before was never received.",
		"an event before the recorder joined, or one in the shadow of that,",
		"Start the recorder before the master, and it sees the stream from its first message."),
	continuity.Disconnected.String(): lossText("The connection to the publisher broke. How many events were sent meanwhile is not known, and a restart may hide in it.",
		"an event that was sent while the connection was down, or a restart meanwhile,",
		"Look at the network between recorder and master at that time."),
	continuity.Reconnect.String(): lossText("The connection to the publisher broke and came back. The numbers go on, but numbers prove nothing across connections: another process may have reached them.",
		"another process was behind the new connection and",
		"Look at the network between recorder and master at that time."),
	continuity.RecorderDown.String(): lossText("No recorder ran for a while, and the numbers jumped meanwhile.",
		"an event that was sent while no recorder ran, or a restart meanwhile,",
		"Let a service manager keep `kvjournal record` running, and look why it ended."),
	continuity.TailLoss.String(): lossText("The publisher's counters say that it sent more than was received.",
		"one of the events that were sent last and never came",
		"Look at the network between recorder and master; the next message, if one comes, shows the gap."),
	continuity.Damaged.String(): lossText("A message could not be decoded, or a part of the journal itself was lost. A message that was received is kept as it is.",
		"an event in what could not be read",
		"Look at the original bytes, and whether the publisher's version sends a format that kvjournal does not know: a damaged message is a defect of one of the two."),
	continuity.Silent.String(): {"This master changed something without an event: what it announces is not all that it does.",
		"the master removed it without an event", "the master stored it without an event",
		"Only a reading of the master itself confirms anything here; a newer version of the master may announce all changes."},
	continuity.Unknown.String(): lossText("Sequence numbers are missing, and no event_id tells why.",
		"one of the events that are missing",
		"The publisher sends no event_id next to the gap, so that its queue and the network cannot be told apart: look at both."),
	DoubtCleared: {"It was stored, and then its scope was cleared without a `removed` of its own. What is stored while a remove-all runs may survive it, so the clear proves nothing about it.",
		"", "it was stored while the remove-all ran, and so is still there", ""},
	DoubtNoEvidence: {"No event that was recorded by then says anything about it there.",
		"", "it was stored before anything that was recorded, or the event that named it was lost", ""},
	DoubtForgotten: {"Nothing is known of it there. The journal was pruned with --forget-removed, which forgot the objects that were gone.",
		"", "it was stored before anything that was recorded, or the event that named it was lost", "Prune without --forget-removed, and what is gone stays known to be gone."},
	DoubtFullBatch: {"The moment lies directly behind a full batch whose last event is about this object: the change may go on in the next batch, as where an upsert is cut in two.",
		"the change went on, and took it away", "the change went on, and stored it", ""},
	DoubtBehindLast: {"No later message shows that nothing is missing between the last batch and the moment.",
		"an event that was sent after the last batch that was received removed it or cleared its scope", "an event that was sent after the last batch that was received stored it",
		"Ask again when a later message has come, or without --at: as of the newest batch."},
	DoubtBeforeFirst: {"The moment lies before all that was recorded of the source.",
		"", "it was stored before anything that was recorded", ""},
	DoubtClock: {"The publisher's clock was set back and passed this time more than once, so the time names more than one moment.",
		"another of those moments is meant, at which it was not there", "another of those moments is meant, at which it was there",
		"Ask by position (--at offset:N or seq:EPOCH/N), which names one moment."},
	DoubtWindow: {"The moment lies in a window in which the old connection was known to be broken, while messages still came: which connection they came by, and so whether anything is missing before them, is not known.",
		"a message that was lost as the connection broke, or another process, removed it or cleared its scope", "a message that was lost as the connection broke, or another process, stored it",
		"Ask for a moment before or behind the window; what is announced behind it counts again."},
	DoubtSilent: {"This source's master changed something without an event: what it announces is not all that it does.",
		"the master removed it without an event", "the master stored it without an event",
		"Only a reading of the master itself confirms that something is there, and only for its own moment; a newer version of the master may announce all changes."},
	DoubtNow: {"`now` is proven only by the master's own counters, and the master was not asked.",
		"an event that is still on its way removed it or cleared its scope", "an event that is still on its way stored it",
		"Ask without --at: as of the newest batch, which is proven by itself."},
	DoubtWithinBatch: {"The batch goes on with this object, and what a batch holds is announced at once.",
		"the rest of the batch removed it", "the rest of the batch stored it", ""},
}
