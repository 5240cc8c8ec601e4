package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kvjournal/kvjournal/journal/reading"
	"github.com/kvjournal/kvjournal/query"
)

// statusFacts says what the facts of a publisher's status mean.
var statusFacts = map[string]string{
	reading.FactTailLoss:        "it sent more than arrived",
	reading.FactRestart:         "another process answers",
	reading.FactPublisherOff:    "it publishes nothing",
	reading.FactPublisherOn:     "it publishes",
	reading.FactKeyless:         "it keeps events of objects to itself",
	reading.FactOldStatus:       "its version may change things silently",
	reading.FactSegmentVanished: "a segment is gone",
	reading.FactCounters:        "counters around a loss",
}

// contentText says what a record about the master says, behind a colon; "" where it says nothing.
func contentText(l *query.LogLine) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	from := ""
	switch l.Type {
	case "publisher_status":
		var s reading.Status
		if json.Unmarshal(l.Content, &s) != nil {
			return ""
		}
		for _, f := range s.Facts {
			if text := statusFacts[f]; text != "" {
				f = text
			}
			add("%s", f)
		}
		if c := s.Counters; c != nil {
			if b := s.Before; b != nil {
				add("published_batches %s, dropped_events %s", change(b.Batches, c.Batches), change(b.Dropped, c.Dropped))
			} else {
				add("published_batches %d, dropped_events %d", c.Batches, c.Dropped)
			}
		}
		if len(s.Segments) > 0 {
			add("segments %s", shorten(printable(query.Bytes(strings.Join(s.Segments, ", "))), 60))
		}
		if s.Silent {
			add("the epoch is flagged silent")
		}
		from = s.From
	case "reconciliation_begun":
		var b reading.Begun
		if json.Unmarshal(l.Content, &b) != nil {
			return ""
		}
		add("%s", strings.ReplaceAll(b.Why, "_", " "))
		from = b.From
	case "reconciliation_part":
		var p query.LogPart
		if json.Unmarshal(l.Content, &p) != nil {
			return ""
		}
		add("of the reading begun at offset %d, tenant %s", p.Begun, shorten(printable(p.Tenant), 24))
		add("%s entries (%s there, %s not there, %s unsaid)", number(uint64(p.Entries)), number(uint64(p.Present)), number(uint64(p.Absent)), number(uint64(p.Unsaid)))
	case "reconciliation_ended":
		var e reading.Ended
		if json.Unmarshal(l.Content, &e) != nil {
			return ""
		}
		add("%s, begun at offset %d, holds through offset %d", strings.ReplaceAll(e.Why, "_", " "), e.Begun, e.Through)
		add("%s listed, %s asked, %s agreed, %s corrections, %s exceptions", number(uint64(e.Listed)), number(uint64(e.Asked)), number(uint64(e.Agreed)), number(uint64(e.Corrections)), number(uint64(e.Exceptions)))
		if e.Contradictions > 0 {
			add("%s contradict what was confirmed: the epoch is flagged silent", number(uint64(e.Contradictions)))
		}
		add("took %d ms", e.TookMs)
		from = e.From
	default:
		return ""
	}
	if from != "" {
		add("from %s", shorten(printable(query.Bytes(from)), 50))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}

func change(from, to uint64) string {
	if from == to {
		return fmt.Sprint(to)
	}
	return fmt.Sprintf("%d to %d", from, to)
}
