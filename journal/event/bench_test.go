package event

import (
	"fmt"
	"testing"
)

func pointer(s string) *string { return &s }

// benchmarkEvents is a batch of 64 as a busy publisher sends it, with keys of 64 hexadecimal digits.
func benchmarkEvents() []Fields {
	events := make([]Fields, 64)
	for i := range events {
		f := Fields{
			Type: Stored, ID: uint64(1_000_000 + i), Timestamp: 1_795_990_000_000 + int64(i),
			ModelName: pointer("deepseek-v3"), BlockSize: 64,
			GroupID: pointer(fmt.Sprintf("sglang-hicache:%08x", i)),
			Tenant:  "default", Backend: "mooncake-master-0", Medium: "cpu",
			Key: fmt.Sprintf("%064x", i*7919),
		}
		switch i % 4 {
		case 1:
			f.Type = Removed
		case 2:
			f.Medium = "disk"
		}
		events[i] = f
	}
	return events
}

// BenchmarkScan reports events/s on one core; /known is the real publisher's order of fields, /any the path for all
// others.
func BenchmarkScan(b *testing.B) {
	events := benchmarkEvents()
	seq := SeqFrame(1)
	encoder := NewEncoder(EncodeOptions{LegacyCompat: true, ObjectKey: true})
	payload := encoder.AppendPayload(nil, 1_795_990_000_000, events, 0)
	frames := [][]byte{nil, seq[:], payload}
	b.Run("known", func(b *testing.B) {
		var batch Batch
		b.ReportAllocs()
		b.SetBytes(int64(len(payload)))
		for b.Loop() {
			batch.Scan(frames)
		}
		if len(batch.Events) != len(events) {
			b.Fatal(batch.Damage)
		}
		b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
	})
	b.Run("any", func(b *testing.B) {
		// One more unknown field in each event is enough to leave the known order.
		reordered := withUnknownField(b, payload)
		frames := [][]byte{nil, seq[:], reordered}
		var batch Batch
		b.ReportAllocs()
		b.SetBytes(int64(len(reordered)))
		for b.Loop() {
			batch.Scan(frames)
		}
		if len(batch.Events) != len(events) {
			b.Fatal(batch.Damage)
		}
		b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
	})
}

// withUnknownField returns the payload with one more field at the end of each event map. It relies on map16 headers.
func withUnknownField(tb testing.TB, payload []byte) []byte {
	var batch Batch
	s := scanner{payload: payload}
	if s.batch(&batch); s.damage != None {
		tb.Fatal(s.damage)
	}
	h, _ := readHeader(payload, 0)
	i := s.skip(h.body, 1)
	h, _ = readHeader(payload, i)
	out := append([]byte(nil), payload[:h.body]...)
	i = h.body
	for range h.size {
		end := s.skip(i, eventDepth)
		out = append(out, payload[i:end]...)
		out[len(out)-(end-i)+2]++
		out = append(out, "\xa3new\x01"...)
		i = end
	}
	return append(out, payload[i:]...)
}

// BenchmarkEncode reports events/s on one core.
func BenchmarkEncode(b *testing.B) {
	events := benchmarkEvents()
	encoder := NewEncoder(EncodeOptions{LegacyCompat: true, ObjectKey: true})
	payload := encoder.AppendPayload(nil, 1_795_990_000_000, events, 0)
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		payload = encoder.AppendPayload(payload[:0], 1_795_990_000_000, events, 0)
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
}
