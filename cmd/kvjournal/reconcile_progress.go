package main

import (
	"fmt"
	"io"

	"github.com/kvjournal/kvjournal/index/reconcile"
)

// readingOn shows on a terminal how far a reading of the master is, and clears what it showed; does nothing where there is none.
func readingOn(w io.Writer) (show func(*reconcile.Progress), done func()) {
	if !isTerminal(w) {
		return func(*reconcile.Progress) {}, func() {}
	}
	shown := false
	return func(p *reconcile.Progress) {
			shown = true
			fmt.Fprintf(w, "\r\x1b[K%s", readingStep(p))
		}, func() {
			if shown {
				fmt.Fprint(w, "\r\x1b[K")
			}
		}
}

// readingWidth is what fits into a line of a terminal, which would else not be cleared.
const readingWidth = 78

// readingStep tells in a line what a reading of the master is at.
func readingStep(p *reconcile.Progress) string {
	text, behind := p.Step, ""
	done, total := number(uint64(p.Done)), number(uint64(p.Total))
	switch p.Step {
	case reconcile.StepTurn:
		text = "waiting for another reading: " + p.Reason
	case reconcile.StepBegin:
		text = "asking for the master's counters, and waiting for the index"
	case reconcile.StepAgain:
		text = "again: " + p.Reason
	case reconcile.StepSnapshot:
		text = "waiting for the snapshot"
	case reconcile.StepListing:
		text = "reading the list: " + done + " keys"
	case reconcile.StepComparing:
		text = "comparing: " + done + " objects"
	case reconcile.StepAsking:
		text = "asking for the media of " + total + " keys: " + done
	case reconcile.StepWaiting:
		text = "waiting until all that it could see is announced"
	}
	if p.Seconds > 0 && p.Step != reconcile.StepTurn { // whose reason says for how long
		behind = fmt.Sprintf(" (%d s)", p.Seconds)
	}
	return shorten(text, readingWidth-len(behind)) + behind
}
