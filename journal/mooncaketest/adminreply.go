package mooncaketest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Replies as recorded from real masters (spec/master-admin.md). What was not recorded is marked "guess".

const (
	contentText = "text/plain; version=0.0.4"
	contentJSON = "application/json; charset=utf-8" // guess: only the listing's type was recorded

	standbyBody = `{"success":false,"error_code":-1011,"error_message":"service plane is not active"}`
	noKeysBody  = `{"success":false,"error":"No keys provided. Use ?keys=key1,key2,..."}`
	healthBody  = `{"status":"ok","role":"leader","ha_state":"serving","service_ready":true,"leader_address":null,"view_version":null}`
	// standbyHealthBody: guess.
	standbyHealthBody = `{"status":"ok","role":"standby","ha_state":"standby","service_ready":false,"leader_address":null,"view_version":null}`
)

// reply is status, type and body. A reply of no type has no Content-Type at all.
type reply struct {
	code        int
	contentType string
	body        []byte
}

var (
	notFound    = text(http.StatusNotFound, "404 Not Found")
	unavailable = text(http.StatusServiceUnavailable, "503 Service Unavailable")
)

func text(code int, body string) reply { return reply{code: code, body: []byte(body)} }

func jsonReply(code int, body []byte) reply { return reply{code, contentJSON, body} }

// write sends the reply; with cut only half of its body, and the end of the connection.
func (r reply) write(w http.ResponseWriter, cut bool) {
	h := w.Header()
	h["Content-Type"] = nil // keeps net/http from guessing one
	if r.contentType != "" {
		h.Set("Content-Type", r.contentType)
	}
	h.Set("Content-Length", strconv.Itoa(len(r.body)))
	w.WriteHeader(r.code)
	body := r.body
	if cut {
		body = body[:len(body)/2]
	}
	_, _ = w.Write(body) // a client that has gone is not the master's trouble
	if cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

func (q *request) health() reply {
	body := healthBody
	if q.isStandby() {
		body = standbyHealthBody
	}
	if q.o.View != 0 {
		body = strings.Replace(body, `"view_version":null`, fmt.Sprintf(`"view_version":%d`, q.o.View), 1)
	}
	return jsonReply(http.StatusOK, []byte(body))
}

func (q *request) role() reply {
	out := reply{http.StatusOK, contentText, []byte("leader")}
	if q.isStandby() {
		out.body = []byte("standby") // guess
	}
	return out
}

func (q *request) status() reply {
	var s Stats
	q.view(func(_ *Store, p *Publisher) { s = p.Status() })
	if q.o.NoPublisher {
		s = Stats{}
	}
	return jsonReply(http.StatusOK, appendStatus(nil, !q.o.NoPublisher, s, q.o.OldStatus))
}

func appendStatus(dst []byte, enabled bool, s Stats, old bool) []byte {
	skipped := "skipped_keyless_events"
	if old {
		skipped = "skipped_unparsed_keys"
	}
	return fmt.Appendf(dst, `{"enabled":%t,"published_batches":%d,"published_events":%d,"dropped_events":%d,"%s":%d}`,
		enabled, s.PublishedBatches, s.PublishedEvents, s.DroppedEvents, skipped, s.SkippedKeylessEvents)
}

// listing reads the keys of the tenant default, shard by shard.
func (q *request) listing() reply {
	shards := 0
	q.view(func(s *Store, _ *Publisher) { shards = len(s.directory.shards) })
	var keys []byte
	q.walk(shards, func(i int, s *Store) { keys = s.directory.appendKeys(keys, i, 0) })
	return reply{http.StatusOK, contentText, keys}
}

// query reads the media of the keys that were asked for, key by key.
func (q *request) query() (out reply, walks bool) {
	keys, ok := askedKeys(q.http.URL.RawQuery)
	if !ok {
		return jsonReply(http.StatusBadRequest, []byte(noKeysBody)), false
	}
	body := []byte(`{"success":true,"data":{`)
	seen := make(map[string]bool, len(keys))
	invalid := false
	q.walk(len(keys), func(i int, s *Store) {
		key := keys[i]
		if seen[key] {
			return
		}
		if len(seen) > 0 {
			body = append(body, ',')
		}
		seen[key] = true
		var valid bool
		body, valid = appendString(body, key)
		invalid = invalid || !valid
		body = s.appendMedia(append(body, ':'), s.directory.find(0, key))
	})
	if invalid {
		return unavailable, true
	}
	return jsonReply(http.StatusOK, append(body, "}}"...)), true
}

// appendMedia appends what the master says of one object; nil is one that it does not know.
func (s *Store) appendMedia(dst []byte, o *object) []byte {
	const rest = `,"values":null,"disk_values":null,"local_disk_values":null,"nof_values":null}`
	switch {
	case o == nil:
		return append(dst, `{"ok":false,"error":"OBJECT_NOT_FOUND"`+rest...)
	case o.media == 0:
		return append(dst, `{"ok":false,"error":"REPLICA_IS_NOT_READY"`+rest...)
	}
	dst = append(dst, `{"ok":true,"error":null,"values":[`...)
	if o.media&onCPU != 0 {
		dst = fmt.Appendf(dst, `{"size_":%d,"buffer_address_":%d,"protocol_":"tcp","transport_endpoint_":"%s"}`,
			objectBytes, uint64(segmentBase), s.segments.all[o.segment].Endpoint)
	}
	dst = append(dst, `],"disk_values":null,"local_disk_values":`...)
	if o.media&onDisk != 0 {
		dst = fmt.Appendf(dst, `[{"client_id":"%s","object_size":%d,"transport_endpoint":"%s"}]`, diskClientID, diskObjectBytes, diskEndpoint)
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"nof_values":null}`...)
}

func (q *request) segments() reply {
	var all []Segment
	q.view(func(s *Store, _ *Publisher) { all = s.Segments() })
	return jsonReply(http.StatusOK, appendSegments(nil, all, segmentBytes))
}

// appendSegments tells of segments of size bytes each.
func appendSegments(dst []byte, all []Segment, size int64) []byte {
	dst = fmt.Appendf(dst, `{"total_segments":%d,"segments":[`, len(all))
	for i, s := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		used := min(s.used, size)
		dst = fmt.Appendf(dst, `{"segment_name":"%s","segment_id":"%s","client_id":"%s","base_address":"%#x","size_bytes":%d,`+
			`"size_human":"%g GiB","te_endpoint":"%[1]s","protocol":"tcp","status":"OK","allocator_used_bytes":%[7]d,`+
			`"allocator_capacity_bytes":%[5]d,"allocator_usage_percent":%[8]s}`,
			s.Endpoint, s.ID, s.ClientID, uint64(segmentBase), size, float64(size)/(1<<30), used, scientific(float64(used)/float64(size)*100))
	}
	return append(dst, "]}"...)
}

// scientific writes a number as masters do: 8.4375E1.
func scientific(x float64) string {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'E', -1, 64), "E")
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
