package event

import (
	"math"
	"strings"
	"testing"
)

// wantStored is what the event of with() must be read as.
func wantStored(change func(*Event)) Event {
	e := Event{Type: Stored, HasID: true, ID: 7, Backend: []byte("b"), Tenant: []byte("t"), Key: []byte("k"), Medium: []byte("cpu")}
	if change != nil {
		change(&e)
	}
	return e
}

// sameEvent compares two events; unlike bytes.Equal it tells a nil Group, Key or Medium from an empty one.
func sameEvent(a, b Event) bool {
	same := func(x, y []byte) bool { return (x == nil) == (y == nil) && string(x) == string(y) }
	return a.Type == b.Type && a.HasID == b.HasID && a.ID == b.ID && string(a.Backend) == string(b.Backend) &&
		same(a.Tenant, b.Tenant) && same(a.Key, b.Key) && same(a.Medium, b.Medium) && same(a.Group, b.Group)
}

// TestToleratedEvents has a line for everything about an event that R6 calls readable.
func TestToleratedEvents(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	for _, test := range []struct {
		name   string
		event  any
		change func(*Event)
	}{
		{"plain", with(), nil},
		{"unknown field", with("new", 1), nil},
		{"unknown nested field", with("new", object{"a", list{1, object{"b", nil}}}), nil},
		{"unknown extension", with("new", extension), nil},
		{"extension 8, 16, 32", with("x", raw("\xc7\x01\x05a"), "y", raw("\xc8\x00\x01\x05a"), "z", raw("\xc9\x00\x00\x00\x01\x05a")), nil},
		{"unknown bool and floats", with("x", true, "y", float32(1.5), "z", 2.5), nil},
		{"empty field name", with("", 1), nil},
		{"field name of any bytes", with("\xff\xfe", 1), nil},
		{"field names as bin", object{[]byte("event_id"), 7, []byte("event_type"), "stored", []byte("tenant_id"), "t",
			[]byte("backend_id"), "b", []byte("medium"), "cpu", []byte("object_key"), "k"}, nil},
		{"other order", object{"object_key", "k", "medium", "cpu", "backend_id", "b", "tenant_id", "t", "event_type", "stored", "event_id", 7}, nil},
		{"map32", raw("\xdf\x00\x00\x00\x06" + encode(with())[1:]), nil},

		{"last duplicate key", with("object_key", "l"), func(e *Event) { e.Key = []byte("l") }},
		{"last duplicate repairs key", without("object_key", "object_key", 1, "object_key", "k"), nil},
		{"last duplicate repairs type", without("event_type", "event_type", "bad", "event_type", "stored"), nil},
		{"last duplicate repairs id", without("event_id", "event_id", -1, "event_id", 7), nil},
		{"last duplicate repairs scope", with("tenant_id", 1, "backend_id", false, "tenant_id", "t", "backend_id", "b"), nil},
		{"last duplicate is nil: id", with("event_id", nil), func(e *Event) { e.HasID, e.ID = false, 0 }},
		{"last duplicate is nil: tenant", with("tenant_id", nil), func(e *Event) { e.Tenant = []byte("default") }},
		{"last duplicate is nil: backend", with("backend_id", nil), func(e *Event) { e.Backend = nil }},
		{"last duplicate is nil: group", with("group_id", "g", "group_id", nil), nil},
		{"duplicate in str and bin", with([]byte("object_key"), "l"), func(e *Event) { e.Key = []byte("l") }},

		{"legacy type only", without("event_type", "type", "BlockRemoved"), func(e *Event) { e.Type = Removed }},
		{"event_type nil", without("event_type", "event_type", nil, "type", "BlockStored"), nil},
		{"last event_type nil", with("event_type", nil, "type", "BlockRemoved"), func(e *Event) { e.Type = Removed }},
		{"event_type wins", with("type", "BlockRemoved"), nil},
		{"event_type wins over nonsense", with("type", list{1}), nil},
		{"types as bin", without("event_type", "event_type", []byte("removed")), func(e *Event) { e.Type = Removed }},
		{"legacy type as bin", without("event_type", "type", []byte("BlockStored")), nil},

		{"key as bin", with("object_key", []byte("\x00\xff")), func(e *Event) { e.Key = []byte("\x00\xff") }},
		{"key as bad UTF-8 str", with("object_key", "\xff\xfe"), func(e *Event) { e.Key = []byte("\xff\xfe") }},
		{"key of 70,000 bytes", with("object_key", long), func(e *Event) { e.Key = []byte(long) }},
		{"key of 70,000 bytes as bin", with("object_key", []byte(long)), func(e *Event) { e.Key = []byte(long) }},
		{"any medium", with("medium", "gpu-Ω\x00"), func(e *Event) { e.Medium = []byte("gpu-Ω\x00") }},
		{"medium as bin", with("medium", []byte("disk")), func(e *Event) { e.Medium = []byte("disk") }},

		{"tenant absent", without("tenant_id"), func(e *Event) { e.Tenant = []byte("default") }},
		{"tenant empty", with("tenant_id", ""), func(e *Event) { e.Tenant = []byte("default") }},
		{"tenant empty bin", with("tenant_id", []byte{}), func(e *Event) { e.Tenant = []byte("default") }},
		{"tenant of any bytes", with("tenant_id", "\xff"), func(e *Event) { e.Tenant = []byte("\xff") }},
		{"backend absent", without("backend_id"), func(e *Event) { e.Backend = nil }},
		{"backend empty", with("backend_id", ""), func(e *Event) { e.Backend = nil }},
		{"backend as bin", with("backend_id", []byte("b")), nil},

		{"id absent", without("event_id"), func(e *Event) { e.HasID, e.ID = false, 0 }},
		{"id 0", with("event_id", 0), func(e *Event) { e.ID = 0 }},
		{"id in uint64", with("event_id", uint64Bytes(7)), nil},
		{"id in uint8, uint16, uint32", with("event_id", raw("\xcc\x01"), "event_id", raw("\xcd\x00\x01"), "event_id", raw("\xce\x00\x00\x00\x07")), nil},
		{"id in int8", with("event_id", raw("\xd0\x07")), nil},
		{"id in int16", with("event_id", raw("\xd1\x00\x07")), nil},
		{"id in int32", with("event_id", raw("\xd2\x00\x00\x00\x07")), nil},
		{"id in int64", with("event_id", int64Bytes(7)), nil},
		{"id of all bits", with("event_id", uint64(math.MaxUint64)), func(e *Event) { e.ID = math.MaxUint64 }},

		{"group", with("group_id", "g"), func(e *Event) { e.Group = []byte("g") }},
		{"group empty", with("group_id", ""), func(e *Event) { e.Group = []byte{} }},
		{"group as bin", with("group_id", []byte("g")), func(e *Event) { e.Group = []byte("g") }},
		{"group of another kind", with("group_id", 5), nil},
		{"optional fields nil", with("model_name", nil, "block_size", nil, "additional_salt", nil, "lora_name", nil, "dp_rank", nil, "timestamp", nil), nil},
		{"optional fields of odd kinds", with("model_name", 1, "block_size", "x", "timestamp", list{}, "seq_hashes", 3), nil},

		{"cleared", object{"event_type", "cleared", "tenant_id", "t", "backend_id", "b", "event_id", 7, "medium", nil},
			func(e *Event) { e.Type, e.Key, e.Medium = Cleared, nil, nil }},
		{"cleared, legacy", object{"type", "AllBlocksCleared"},
			func(e *Event) { *e = Event{Type: Cleared, Tenant: []byte("default")} }},
		{"cleared ignores key and medium", with("event_type", "cleared", "object_key", 1, "medium", "\xff"),
			func(e *Event) { e.Type, e.Key, e.Medium = Cleared, nil, nil }},
		{"value at the greatest depth", with("new", nested(MaxDepth-fieldDepth+1)), nil},
		{"map at the greatest depth", with("new", deepMap(MaxDepth-fieldDepth+1)), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b Batch
			b.Scan(message(payloadOf(test.event)))
			if b.Damage != None {
				t.Fatalf("damaged: %v at %d", b.Damage, b.DamageAt)
			}
			if len(b.Events) != 1 || !sameEvent(b.Events[0], wantStored(test.change)) {
				t.Fatalf("got %+v", b.Events)
			}
			if !b.HasSeq || b.Seq != 9 || !b.HasTime || b.Time != 1000 {
				t.Fatalf("got %+v", b)
			}
		})
	}
}

// TestToleratedPayloads has a line for everything around the events that R6 calls readable, times included.
func TestToleratedPayloads(t *testing.T) {
	events := list{with()}
	for _, test := range []struct {
		name    string
		payload string
		time    int64 // ms
		events  int
	}{
		{"three elements", encode(list{1000, events, 0}), 1000, 1},
		{"two elements", encode(list{1000, events}), 1000, 1},
		{"five elements", encode(list{1000, events, 0, object{"a", nil}, extension}), 1000, 1},
		{"dp_rank of another kind", encode(list{1000, events, "x"}), 1000, 1},
		{"no events", encode(list{1000, list{}, 0}), 1000, 0},
		{"array16", "\xdc\x00\x02" + encode(1000) + "\xdc\x00\x01" + encode(with()), 1000, 1},
		{"array32", "\xdd\x00\x00\x00\x02" + encode(1000) + "\xdd\x00\x00\x00\x01" + encode(with()), 1000, 1},
		{"65 events", encode(list{1000, append(make(list, 0), repeated(with(), 65)...), 0}), 1000, 65},

		{"float seconds", encode(list{1.5, events}), 1500, 1},
		{"float32 seconds", encode(list{float32(0.5), events}), 500, 1},
		{"float seconds are cut", encode(list{1.9999, events}), 1999, 1},
		{"negative float seconds", encode(list{-1.9999, events}), -1999, 1},
		{"just below 1e11", encode(list{99_999_999_999.0, events}), 99_999_999_999_000, 1},
		{"float 1e11 is milliseconds", encode(list{1e11, events}), 100_000_000_000, 1},
		{"float milliseconds", encode(list{1.7e12 + 0.75, events}), 1_700_000_000_000, 1},
		{"integers are never seconds", encode(list{5, events}), 5, 1},
		{"negative", encode(list{-5, events}), -5, 1},
		{"negative int8", encode(list{-100, events}), -100, 1},
		{"int64", encode(list{int64Bytes(-1), events}), -1, 1},
		{"uint64 beyond int64", encode(list{uint64Bytes(math.MaxUint64), events}), math.MaxInt64, 1},
		{"largest int64", encode(list{uint64Bytes(math.MaxInt64), events}), math.MaxInt64, 1},
		{"float beyond int64", encode(list{1e30, events}), math.MaxInt64, 1},
		{"float 2^63", encode(list{floatBytes(1 << 63), events}), math.MaxInt64, 1},
		{"float below int64", encode(list{-1e30, events}), math.MinInt64, 1},
		{"least float", encode(list{-math.MaxFloat64, events}), math.MinInt64, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			frames := message(test.payload)
			frames[0] = []byte("any topic")
			var b Batch
			b.Scan(frames)
			if b.Damage != None {
				t.Fatalf("damaged: %v at %d", b.Damage, b.DamageAt)
			}
			if !b.HasTime || b.Time != test.time || len(b.Events) != test.events {
				t.Fatalf("time %d, %d events", b.Time, len(b.Events))
			}
		})
	}
}

func repeated(v any, n int) (vs []any) {
	for range n {
		vs = append(vs, v)
	}
	return vs
}

// TestScanReuse checks that nothing of a message is left in the batch when the next one is scanned, and that room is
// kept.
func TestScanReuse(t *testing.T) {
	var b Batch
	b.Scan(message(payloadOf(with("group_id", "g"), with())))
	b.Scan(message(payloadOf(object{"type", "AllBlocksCleared"})))
	if want := (Event{Type: Cleared, Tenant: []byte("default")}); len(b.Events) != 1 || !sameEvent(b.Events[0], want) {
		t.Errorf("got %+v", b.Events)
	}
	b.Scan(message("\xc1"))
	if b.Damage != Malformed || b.HasTime || b.Time != 0 || len(b.Events) != 0 || !b.HasSeq {
		t.Errorf("got %+v", b)
	}
	b.Scan(nil)
	if b.HasSeq || b.Seq != 0 || b.Damage != FrameCount || b.DamageAt != 0 {
		t.Errorf("got %+v", b)
	}

	frames := message(payloadOf(repeated(with(), 64)...))
	if n := testing.AllocsPerRun(100, func() { b.Scan(frames) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTypeNames(t *testing.T) {
	for typ, name := range map[Type]string{Stored: "stored", Removed: "removed", Cleared: "cleared", 0: "unknown"} {
		if typ.String() != name {
			t.Errorf("%d: %s", typ, typ)
		}
	}
}
