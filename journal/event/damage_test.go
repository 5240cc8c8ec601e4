package event

import (
	"errors"
	"math"
	"testing"
)

// TestDamage has a line for everything that R6 calls damage, with the cause that must be named.
func TestDamage(t *testing.T) {
	good := payloadOf(with())
	for _, test := range []struct {
		name    string
		payload string
		cause   Cause
	}{
		{"empty payload", "", Cut},
		{"trailing byte", good + "\xc0", Trailing},
		{"trailing unused byte", good + "\xc1", Trailing},
		{"two payloads", good + good, Trailing},

		{"unused byte as payload", "\xc1", Malformed},
		{"unused byte as time", "\x92\xc1\x90", Malformed},
		{"unused byte as events", "\x92\x01\xc1", Malformed},
		{"unused byte as event", payloadOf(raw("\xc1")), Malformed},
		{"unused byte as value", payloadOf(with("x", raw("\xc1"))), Malformed},
		{"unused byte as key", payloadOf(with(raw("\xc1"), 1)), Malformed},
		{"unused byte behind the events", "\x93\x01\x90\xc1", Malformed},
		{"payload nil", encode(nil), Malformed},
		{"payload map", encode(object{"a", 1, "b", list{}}), Malformed},
		{"payload integer", encode(5), Malformed},
		{"payload of no elements", encode(list{}), Malformed},
		{"payload of one element", encode(list{1000}), Malformed},
		{"events nil", encode(list{1000, nil, 0}), Malformed},
		{"events map", encode(list{1000, object{"a", 1}, 0}), Malformed},
		{"event nil", payloadOf(nil), Malformed},
		{"event array", payloadOf(list{"event_type", "cleared"}), Malformed},
		{"event text", payloadOf("cleared"), Malformed},
		{"second event bad", payloadOf(with(), 1), Malformed},

		{"event key integer", payloadOf(with(1, 1)), MapKey},
		{"event key nil", payloadOf(with(nil, 1)), MapKey},
		{"event key array", payloadOf(with(list{}, 1)), MapKey},
		{"event key extension", payloadOf(with(extension, 1)), MapKey},
		{"nested key", payloadOf(with("new", object{"a", object{1, 2}})), MapKey},
		{"key in an array in an extra element", encode(list{1000, list{with()}, 0, list{object{true, 2}}}), MapKey},

		{"too deep", payloadOf(with("new", nested(MaxDepth-fieldDepth+2))), Depth},
		{"too deep maps", payloadOf(with("new", deepMap(MaxDepth-fieldDepth+2))), Depth},
		{"scalar too deep", payloadOf(with("new", raw(string(nested(MaxDepth - fieldDepth + 1)[:MaxDepth-fieldDepth])+"\x91\xc0"))), Depth},
		{"too deep behind the events", encode(list{1000, list{}, nested(MaxDepth + 1)}), Depth},

		{"no event_type", payloadOf(without("event_type")), EventType},
		{"unknown event_type", payloadOf(with("event_type", "moved")), EventType},
		{"event_type in capitals", payloadOf(with("event_type", "Stored")), EventType},
		{"empty event_type", payloadOf(with("event_type", "", "type", "BlockStored")), EventType},
		{"legacy name as event_type", payloadOf(with("event_type", "BlockStored")), EventType},
		{"event_type name as type", payloadOf(without("event_type", "type", "stored")), EventType},
		{"event_type integer", payloadOf(with("event_type", 1, "type", "BlockStored")), EventType},
		{"event_type false", payloadOf(with("event_type", false, "type", "BlockStored")), EventType},
		{"event_type extension", payloadOf(with("event_type", extension, "type", "BlockStored")), EventType},
		{"both types nil", payloadOf(with("event_type", nil, "type", nil)), EventType},
		{"unknown type", payloadOf(without("event_type", "type", "BlockMoved")), EventType},
		{"type array", payloadOf(without("event_type", "type", list{})), EventType},
		{"last type bad", payloadOf(with("event_type", "x")), EventType},
		{"empty event", payloadOf(object{}), EventType},

		{"no key", payloadOf(without("object_key")), Key},
		{"key nil", payloadOf(with("object_key", nil)), Key},
		{"key empty", payloadOf(with("object_key", "")), Key},
		{"key empty bin", payloadOf(with("object_key", []byte{})), Key},
		{"key integer", payloadOf(with("object_key", 5)), Key},
		{"key array", payloadOf(with("object_key", list{"k"})), Key},
		{"key extension", payloadOf(with("object_key", extension)), Key},
		{"no key, removed", payloadOf(without("object_key", "event_type", "removed")), Key},

		{"no medium", payloadOf(without("medium")), Medium},
		{"medium nil", payloadOf(with("medium", nil)), Medium},
		{"medium empty", payloadOf(with("medium", "")), Medium},
		{"medium integer", payloadOf(with("medium", 5)), Medium},
		{"medium no UTF-8", payloadOf(with("medium", "cp\xff")), Medium},
		{"medium surrogate", payloadOf(with("medium", "\xed\xa0\x80")), Medium},
		{"medium overlong", payloadOf(with("medium", []byte("\xc0\x80"))), Medium},

		{"time nil", encode(list{nil, list{}, 0}), Time},
		{"time text", encode(list{"1000", list{}, 0}), Time},
		{"time bool", encode(list{true, list{}, 0}), Time},
		{"time array", encode(list{list{}, list{}, 0}), Time},
		{"time extension", encode(list{raw("\xd6\xff\x00\x00\x00\x01"), list{}, 0}), Time},
		{"time NaN", encode(list{math.NaN(), list{}, 0}), Time},
		{"time infinite", encode(list{math.Inf(1), list{}, 0}), Time},
		{"time float32 infinite", encode(list{float32(math.Inf(-1)), list{}, 0}), Time},

		{"tenant integer", payloadOf(with("tenant_id", 5)), Scope},
		{"tenant false", payloadOf(with("tenant_id", false)), Scope},
		{"tenant array", payloadOf(with("tenant_id", list{})), Scope},
		{"tenant extension", payloadOf(with("tenant_id", extension)), Scope},
		{"backend integer", payloadOf(with("backend_id", 0)), Scope},
		{"backend map", payloadOf(with("backend_id", object{})), Scope},
		{"backend of cleared", payloadOf(with("event_type", "cleared", "backend_id", 0)), Scope},

		{"id negative", payloadOf(with("event_id", -1)), EventID},
		{"id negative int64", payloadOf(with("event_id", int64Bytes(math.MinInt64))), EventID},
		{"id float", payloadOf(with("event_id", 7.0)), EventID},
		{"id bool", payloadOf(with("event_id", true)), EventID},
		{"id text", payloadOf(with("event_id", "7")), EventID},
		{"id of cleared", payloadOf(with("event_type", "cleared", "event_id", "7")), EventID},

		{"type is looked at first", payloadOf(object{"tenant_id", 1, "event_id", -1}), EventType},
		{"then the scope", payloadOf(object{"event_type", "stored", "tenant_id", 1, "event_id", -1}), Scope},
		{"then the id", payloadOf(object{"event_type", "stored", "event_id", -1}), EventID},
		{"then the key", payloadOf(object{"event_type", "stored"}), Key},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b Batch
			b.Scan(message(test.payload))
			if b.Damage != test.cause {
				t.Errorf("cause %v, want %v", b.Damage, test.cause)
			}
			if !b.HasSeq || b.Seq != 9 || b.HasTime || b.Time != 0 || len(b.Events) != 0 {
				t.Errorf("got %+v", b)
			}
			if b.DamageAt < 0 || b.DamageAt > len(test.payload) {
				t.Errorf("at %d of %d bytes", b.DamageAt, len(test.payload))
			}
			var damage *DamageError
			if !errors.As(b.Err(), &damage) || damage.Cause != test.cause || damage.At != b.DamageAt {
				t.Errorf("error %v", b.Err())
			}
		})
	}
}

func TestDamagedFrames(t *testing.T) {
	payload := []byte(payloadOf(with()))
	for _, test := range []struct {
		name   string
		frames [][]byte
		cause  Cause
	}{
		{"no frames", nil, FrameCount},
		{"one frame", [][]byte{payload}, FrameCount},
		{"two frames", [][]byte{make([]byte, 8), payload}, FrameCount},
		{"four frames", [][]byte{nil, make([]byte, 8), payload, nil}, FrameCount},
		{"no sequence number", [][]byte{nil, nil, payload}, SeqFrameSize},
		{"7 bytes", [][]byte{nil, make([]byte, 7), payload}, SeqFrameSize},
		{"9 bytes", [][]byte{nil, make([]byte, 9), payload}, SeqFrameSize},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b Batch
			b.Scan(test.frames)
			if b.Damage != test.cause || b.HasSeq || b.HasTime || len(b.Events) != 0 {
				t.Errorf("got %+v", b)
			}
		})
	}
}

// TestCutEverywhere cuts messages at every byte: each must be damaged, as Cut.
func TestCutEverywhere(t *testing.T) {
	payloads := []string{
		payloadOf(with("x", extension, "y", raw("\xc8\x00\x01\x05a"), "z", raw("\xde\x00\x01\xa1a\xdd\x00\x00\x00\x01\xcb12345678"))),
		string(NewEncoder(EncodeOptions{LegacyCompat: true, ObjectKey: true}).AppendPayload(nil, 1_795_990_000_000, benchmarkEvents()[:3], 9)),
	}
	for _, payload := range payloads {
		for n := range len(payload) {
			var b Batch
			b.Scan(message(payload[:n]))
			if b.Damage != Cut {
				t.Fatalf("cut at %d of %d: %v at %d", n, len(payload), b.Damage, b.DamageAt)
			}
		}
	}
}

// TestBombs: messages whose sizes promise far more than they hold must neither make Scan or Decode allocate for it, nor
// keep them busy, nor exhaust the stack.
func TestBombs(t *testing.T) {
	const huge = "\xff\xff\xff\xff"
	deep := make([]byte, 1<<20)
	for i := range deep {
		deep[i] = 0x91
	}
	for _, test := range []struct {
		name    string
		payload string
	}{
		{"payload array32", "\xdd" + huge + "\x01\x90"},
		{"events array32", "\x93\x01\xdd" + huge + "\x80"},
		{"events array16", "\x93\x01\xdc\xff\xff\x80"},
		{"event map32", "\x93\x01\x91\xdf" + huge + "\xa1a\x01"},
		{"value array32", "\x93\x01\x91\x81\xa1a\xdd" + huge + "\x01"},
		{"value map32", "\x93\x01\x91\x81\xa1a\xdf" + huge + "\xa1a\x01"},
		{"value str32", "\x93\x01\x91\x81\xa1a\xdb" + huge + "abc"},
		{"value bin32", "\x93\x01\x91\x81\xa1a\xc6" + huge + "abc"},
		{"value ext32", "\x93\x01\x91\x81\xa1a\xc9" + huge + "abc"},
		{"key str32", "\x93\x01\x91\x81\xdb" + huge + "abc"},
		{"dp_rank array32", "\x93\x01\x90\xdd" + huge + "\x01"},
		{"arrays in arrays", string(deep)},
		{"arrays in an event", "\x93\x01\x91\x81\xa1a" + string(deep)},
		{"promising arrays in arrays", "\x93\x01\x90" + string(promising(1000))},
	} {
		t.Run(test.name, func(t *testing.T) {
			frames := message(test.payload)
			var b Batch
			b.Scan(frames)
			if b.Damage != Cut && b.Damage != Depth && b.Damage != Malformed {
				t.Errorf("cause %v", b.Damage)
			}
			if most := len(test.payload)/smallestEvent + 1; cap(b.Events) > most {
				t.Errorf("room for %d events, want at most %d", cap(b.Events), most)
			}
			if m, err := Decode(frames); m == nil || err == nil {
				t.Errorf("Decode: %v, %v", m, err)
			}
		})
	}
}

// promising returns arrays in each other that each claim about as many elements as there are bytes left.
func promising(n int) (out []byte) {
	for len(out) < n {
		out = append(out, 0xdc, byte((n-len(out)-3)>>8), byte(n-len(out)-3))
	}
	return out
}

func TestDamageErrors(t *testing.T) {
	for _, test := range []struct {
		frames [][]byte
		want   string
	}{
		{message("\x92\x01\x91\xc1"), "event: damaged message: malformed at byte 3 of the payload"},
		{message("\x92\x01\x91\x80"), "event: damaged message: event_type at byte 3 of the payload"},
		{message("\x92\x01\x90\x00"), "event: damaged message: trailing at byte 3 of the payload"},
		{nil, "event: damaged message: frame_count"},
		{[][]byte{nil, nil, nil}, "event: damaged message: seq_frame"},
	} {
		var b Batch
		b.Scan(test.frames)
		if err := b.Err(); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	var b Batch
	b.Scan(message(payloadOf()))
	if err := b.Err(); err != nil {
		t.Error(err)
	}
}

// TestCauses pins the values: they are part of the journal's format.
func TestCauses(t *testing.T) {
	names := []string{"none", "frame_count", "seq_frame", "cut", "trailing", "depth", "map_key", "malformed", "event_type",
		"key", "medium", "time", "scope", "event_id", "too_many_events"}
	if int(causeCount) != len(names) {
		t.Fatalf("%d causes, %d names", causeCount, len(names))
	}
	for value, name := range names {
		if got := Cause(value).String(); got != name {
			t.Errorf("%d: %s, want %s", value, got, name)
		}
	}
	if got := Cause(200).String(); got != "cause_200" {
		t.Error(got)
	}
}
