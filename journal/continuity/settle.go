package continuity

import "math"

// restartUnseen begins the epoch of a process of which no message has come yet.
func (s *State) restartUnseen() Gap {
	s.begin()
	switch {
	case s.Seq == 0: // what is still to come of the process before the last is as old as ever
	case s.Break == Unbroken || s.Window:
		s.earlier = earlier{earlierProcess, s.replaced()}
	default:
		s.earlier = earlier{} // all that its connection brought has come
	}
	s.Epoch++
	s.Seq, s.HasEventID, s.EventID = 0, true, 0
	s.Keyed, s.Anchored, s.FromPoll = false, false, true
	return Gap{Cause: PublisherRestart, Epoch: s.Epoch}
}

// settle judges settled counters on a connection that stands: true if all that the process sent was received. Else it says
// what is missing, if something is, and moves behind it. drops is how many of the missing numbers may be dropped events.
func (s *State) settle(c *Counters, drops uint64, o *Outcome) bool {
	s.begin()
	sum, missing := c.Sum(), c.Sum()-s.Seq
	switch {
	case sum < s.Seq:
		return false // by one: counters that are behind, even now
	case sum == s.Seq && s.Break == Unbroken:
		s.FromPoll = sum == 0
		if s.HasEventID && sum > 0 {
			s.Anchored = c.Events == s.EventID
		}
		return true
	case s.Break == Unbroken && s.Seq != 0:
		o.Gap = Gap{Cause: TailLoss}
		o.Gap.Min, o.Gap.Max = s.lostTail(c, missing, min(drops, missing))
		o.Gap.Lost = LostBetween
		if o.Gap.Min == o.Gap.Max {
			o.Gap.Lost = LostExactly
		}
		s.earlier = earlier{earlierTail, s.replaced()}
	default:
		// No message of this connection, or of this process, has come: the poll stands for the first of them (R5).
		if sum > s.Seq {
			o.Gap.Cause = s.missed()
		} else if sum > 0 {
			o.Gap.Cause = Reconnect
		}
		if s.Break != Unbroken {
			s.Keyed, s.Anchored = false, false
		}
		s.earlier = earlier{}
	}
	o.Mark, o.MarkCause = MarkBehind, o.Gap.Cause
	if o.Gap.Cause == CauseNone {
		o.MarkCause = Reconnect // of a process that has sent nothing yet
	} else {
		o.Gap.Epoch = s.Epoch
	}
	if missing > 0 {
		o.Gap.First, o.Gap.Last = s.Seq+1, sum
		s.HasEventID = false
	}
	s.Seq, s.FromPoll, s.Break = sum, sum == 0, Unbroken
	return false
}

// lostTail bounds the events lost with the missing numbers behind Seq. Each of them was a batch of 1 to fullBatch events or
// one dropped event; at most drops of them were the latter.
func (s *State) lostTail(c *Counters, missing, drops uint64) (least, most uint64) {
	least, most = missing, uint64(math.MaxUint64)
	if missing <= math.MaxUint64/fullBatch {
		most = missing * fullBatch
	}
	if all := saturate(c.Events, drops); all >= least {
		most = min(most, all)
	}
	if !s.Anchored || !s.HasEventID || c.Events < s.EventID {
		return least, most
	}
	// The first event's id was 1, so published_events says how many events the missing batches held.
	events := c.Events - s.EventID
	fewest := events / fullBatch // batches
	if events%fullBatch != 0 {
		fewest++
	}
	fewest = max(fewest, missing-drops)
	mostBatches := min(events, missing)
	if fewest > mostBatches {
		return least, most // the counters contradict the stream
	}
	return saturate(events, missing-mostBatches), saturate(events, missing-fewest)
}
