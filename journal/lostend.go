package journal

import "log/slog"

// LostEnd returns the acknowledged records, first to last, that are gone from the journal's end and of which no record tells yet: the head
// file knows of them, or an index that applied all up to knownTo. lost is false where nothing is gone.
func (j *Journal) LostEnd(knownTo uint64) (first, last uint64, lost bool) {
	first, last = j.Durable()+1, j.known(knownTo)
	return first, last, last >= first
}

// WarnLostEnd says what it means that records are gone from the end of a journal that is read at rest.
func WarnLostEnd(log *slog.Logger, first, last uint64) {
	log.Warn("acknowledged records are gone from the journal's end: answers are as of the record before them, and what they may have told of the masters is taken to be so. "+
		"`kvjournal record` goes on behind them and marks what they put in doubt; `kvjournal repair --to NEW` looks for more that is readable",
		"first_missing_offset", first, "last_missing_offset", last)
}
