package service

import (
	"fmt"

	"github.com/kvjournal/kvjournal/query/httpapi"
)

// DefaultReadyLag is how many records the index may be behind the journal for answers to count as of now: about two seconds of a
// publisher that sends one event a message at full speed.
const DefaultReadyLag = 100_000

// NotReady implements httpapi.Readier.
func (s *Service) NotReady() []httpapi.Reason {
	var out []httpapi.Reason
	if p := s.rec.Paused(); p != nil {
		out = append(out, httpapi.Reason{Check: "disk", Detail: fmt.Sprintf("recording is paused since %s: %d bytes are free, --min-free is %d; free space", p.Since.UTC().Format("2006-01-02T15:04:05Z"), p.Free, p.Least)})
	}
	if s.journal.WaitsForRoom() {
		out = append(out, httpapi.Reason{Check: "journal", Detail: "the disk is full, nothing more becomes durable; free space"})
	}
	out = append(out, s.indexNotReady()...)
	last := map[uint32]string{}
	for i, st := range s.rec.Status() {
		if id := s.rec.SourceOf(i); !st.Connected && st.LastError != "" && last[id] == "" {
			last[id] = ": " + st.Endpoint + ": " + st.LastError
		}
	}
	for _, src := range s.recorded {
		if !s.rec.Connected(src.ID) {
			out = append(out, httpapi.Reason{Check: "source", Source: src.Name, Detail: "not connected" + last[src.ID]})
		}
	}
	return out
}

func (s *Service) indexNotReady() []httpapi.Reason {
	if err := s.indexErr.Load(); err != nil {
		return []httpapi.Reason{{Check: "index", Detail: (*err).Error()}}
	}
	x := s.index.Load()
	if x == nil {
		return []httpapi.Reason{{Check: "index", Detail: "the index is just being opened"}}
	}
	durable, applied := s.journal.Durable(), x.Applied()
	if lag := durable - min(durable, applied); lag > s.readyLag {
		return []httpapi.Reason{{Check: "index", Detail: fmt.Sprintf("the index is %d records behind the journal, more than %d", lag, s.readyLag)}}
	}
	return nil
}
