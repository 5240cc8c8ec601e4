package query

import "time"

// Check refuses a span whose end lies before its beginning, as far as the moments by themselves tell: nothing would be looked at, and
// "nothing was found" would be taken for an answer. now is that of our clock.
func (s Span) Check(now time.Time) error {
	if !s.reversed(now) {
		return nil
	}
	return usagef("--from lies behind --to: it is %s, and --to is %s; exchange them", whenText(s.From), whenText(s.To))
}

// reversed tells it of moments of one kind, and of now. Others have an order in the stream of a source only.
func (s Span) reversed(now time.Time) bool {
	from, to := s.From, s.To
	switch {
	case from.Kind == Now && to.Kind == AtTime:
		return to.Ms < now.UnixMilli()
	case from.Kind != to.Kind:
		return false
	case from.Kind == AtTime:
		return to.Ms < from.Ms
	case from.Kind == AtOffset:
		return to.Offset < from.Offset
	case from.Kind == AtSeq:
		return to.Epoch < from.Epoch || to.Epoch == from.Epoch && to.Seq < from.Seq
	}
	return false
}
