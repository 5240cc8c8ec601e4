package mooncake

import "context"

// Segment is a piece of memory that a client has lent to the master. When it goes, what lay in it may be gone without an event.
type Segment struct {
	ID       string // its identity; never empty, and no two alike in a reply
	Name     string // host and port; a client that comes back has the same name and another ID
	ClientID string
	Endpoint string
	Protocol string
	Status   string // "OK"
	Size     uint64 // bytes; this and the next 0 if not told
	Used     uint64 // bytes
}

// Segments asks for the mounted segments. None at all is an answer.
func (c *Client) Segments(ctx context.Context) ([]Segment, error) {
	var segments []Segment
	_, err := c.call(ctx, KindSegments, "", 0, func(r *reply) (err error) {
		segments, err = decodeSegments(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return segments, nil
}

func decodeSegments(r *reply) ([]Segment, error) {
	type segment struct {
		ID       string `json:"segment_id"`
		Name     string `json:"segment_name"`
		ClientID string `json:"client_id"`
		Endpoint string `json:"te_endpoint"`
		Protocol string `json:"protocol"`
		Status   string `json:"status"`
		Size     figure `json:"size_bytes"`
		Used     figure `json:"allocator_used_bytes"`
	}
	var v struct {
		failure
		Total    *uint64   `json:"total_segments"`
		Segments []segment `json:"segments"`
	}
	if err := decodeObject(r, &v, &v.failure); err != nil {
		return nil, err
	}
	if err := missing(field{"total_segments", v.Total == nil}); err != nil {
		return nil, err
	}
	if *v.Total != uint64(len(v.Segments)) {
		return nil, broken("total_segments is %d, but %d are listed", *v.Total, len(v.Segments))
	}
	seen := make(map[string]bool, len(v.Segments))
	segments := make([]Segment, 0, len(v.Segments))
	for i, s := range v.Segments {
		if s.ID == "" {
			return nil, broken("segment %d of %d has no segment_id", i+1, len(v.Segments))
		}
		if seen[s.ID] {
			return nil, broken("segment_id %q comes twice", s.ID)
		}
		seen[s.ID] = true
		segments = append(segments, Segment{s.ID, s.Name, s.ClientID, s.Endpoint, s.Protocol, s.Status, uint64(s.Size), uint64(s.Used)})
	}
	return segments, nil
}
