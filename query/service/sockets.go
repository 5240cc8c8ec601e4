package service

import "github.com/kvjournal/kvjournal/query"

// sockets are the endpoints as stats show them.
func (s *Service) sockets() []query.SocketStats {
	names := map[uint32]string{}
	for _, src := range s.journal.Sources() {
		names[src.ID] = src.Name
	}
	var out []query.SocketStats
	for i, st := range s.rec.Status() {
		o := query.SocketStats{
			Source: names[s.rec.SourceOf(i)], Endpoint: st.Endpoint, Connected: st.Connected, Messages: st.Messages, Bytes: st.Bytes,
			Disconnects: st.Disconnects, Replaced: st.Replaced, Stalls: st.Stalls, LastError: st.LastError,
		}
		if !st.LastErrorTime.IsZero() {
			o.LastErrorTime = &query.Time{Time: st.LastErrorTime}
		}
		out = append(out, o)
	}
	return out
}
