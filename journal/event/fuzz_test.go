package event

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// checkScan compares what Scan and Decode make of a message with the reference, and checks what must hold of any.
func checkScan(t *testing.T, frames [][]byte) {
	t.Helper()
	var b Batch
	b.Scan(frames)
	payload := 0
	if len(frames) == frameCount {
		payload = len(frames[framePayload])
	}
	if most := payload/smallestEvent + 1; cap(b.Events) > most {
		t.Errorf("room for %d events in %d bytes, want at most %d", cap(b.Events), payload, most)
	}
	want := referenceBatch(frames)
	if (b.Damage == None) != (want.Damage == None) || b.Damage >= causeCount {
		t.Fatalf("damage %v at %d, want %v", b.Damage, b.DamageAt, want.Damage)
	}
	if b.HasSeq != want.HasSeq || b.Seq != want.Seq || b.HasTime != want.HasTime || b.Time != want.Time || len(b.Events) != len(want.Events) {
		t.Fatalf("got %+v\nwant %+v", b, want)
	}
	for i := range want.Events {
		if !sameEvent(b.Events[i], want.Events[i]) {
			t.Errorf("event %d: got %+v\nwant %+v", i, b.Events[i], want.Events[i])
		}
	}

	m, err := Decode(frames)
	if (err == nil) != (b.Damage == None) || m == nil || m.HasSeq != b.HasSeq || m.Seq != b.Seq {
		t.Fatalf("Decode: %v, %v", m, err)
	}
	for _, e := range m.Events {
		_ = e.Raw.String()
		for _, field := range e.Fields {
			_ = field.Value.String()
		}
	}
	if err != nil {
		return
	}
	if len(m.Events) != len(b.Events) {
		t.Fatalf("Decode: %d events, Scan: %d", len(m.Events), len(b.Events))
	}
	for i, e := range b.Events {
		key, _ := m.Events[i].Get(FieldObjectKey).Bytes()
		if e.Type != Cleared && !bytes.Equal(key, e.Key) {
			t.Errorf("event %d: Decode has key %q, Scan %q", i, key, e.Key)
		}
	}
}

// seeds are payloads to start from.
func seeds() (payloads [][]byte) {
	for _, options := range allOptions {
		encoder := NewEncoder(options)
		payloads = append(payloads,
			encoder.AppendPayload(nil, 1_795_990_000_000, benchmarkEvents()[:5], 3),
			encoder.AppendPayload(nil, 0, []Fields{{Type: Cleared, Salt: pointer("s")}}, 0),
			encoder.AppendPayload(nil, -1, nil, 0))
	}
	for _, payload := range []string{
		payloadOf(with("new", object{"a", list{1, extension}})),
		payloadOf(without("event_type", "event_type", nil, "type", "BlockRemoved", []byte("object_key"), []byte("k"))),
		payloadOf(with("x", nested(62)), with("event_id", int64Bytes(-1))),
		encode(list{1.5, list{with("event_id", nil, "tenant_id", nil, "backend_id", nil)}, 0, 1, object{"a", raw("\xc9\x00\x00\x00\x01\x05a")}}),
		encode(list{float32(1e12), list{}, 0}),
		encode(list{uint64Bytes(1 << 63), list{object{"type", "AllBlocksCleared"}}}),
		"\xdd\x00\x00\x00\x02\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xdc\x00\x01\xdf\x00\x00\x00\x01\xc4\x04type\xda\x00\x10AllBlocksCleared",
	} {
		payloads = append(payloads, []byte(payload))
	}
	return payloads
}

// FuzzScan compares the scanner with msgpack/v5 on any payload.
func FuzzScan(f *testing.F) {
	for _, payload := range seeds() {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		checkScan(t, message(string(payload)))
	})
}

// TestScanMutated does the same without the fuzzer's engine, for every run of the tests: payloads with a few bytes
// changed, and whole pieces copied, cut or moved. The seed of a failure is printed with it.
func TestScanMutated(t *testing.T) {
	interesting := []byte{0x00, 0x7f, 0x80, 0x81, 0x90, 0x91, 0xa0, 0xa1, 0xbf, 0xc0, 0xc1, 0xc2, 0xc4, 0xc7, 0xca, 0xcb, 0xcc, 0xcf,
		0xd0, 0xd3, 0xd4, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff}
	payloads := seeds()
	for seed := range uint64(30_000) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := bytes.Clone(payloads[random.IntN(len(payloads))])
		for range 1 + random.IntN(3) {
			at, to := random.IntN(len(p)), random.IntN(len(p))
			switch random.IntN(6) {
			case 0:
				p[at] = interesting[random.IntN(len(interesting))]
			case 1:
				p[at] ^= 1 << random.IntN(8)
			case 2:
				p[at]++
			case 3:
				copy(p[at:], p[to:min(to+1+random.IntN(20), len(p))])
			case 4:
				p = append(p[:at:at], p[min(at+1+random.IntN(4), len(p)-1):]...)
			case 5:
				p = append(p[:at:at], append([]byte{interesting[random.IntN(len(interesting))]}, p[at:]...)...)
			}
			if len(p) == 0 {
				p = []byte{0xc0}
			}
		}
		checkScan(t, message(string(p)))
		if t.Failed() {
			t.Fatalf("seed %d, payload %q", seed, p)
		}
	}
}
