package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestDecode checks that absent, nil and empty stay apart, and that unknown and duplicate fields are kept.
func TestDecode(t *testing.T) {
	event := object{"object_key", "a", "new", object{"x", list{1, -1, extension}}, "group_id", "", "medium", nil,
		"object_key", []byte("k"), "event_type", "cleared", "other", true}
	frames := message(encode(list{1.5, list{event, object{"type", "AllBlocksCleared"}}, 3, "extra", nil}))
	frames[0] = []byte("topic")
	m, err := Decode(frames)
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Topic) != "topic" || !m.HasSeq || m.Seq != 9 || m.Time.String() != "1.5" || m.DPRank.String() != "3" ||
		fmt.Sprint(m.Extra) != `["extra" nil]` || len(m.Events) != 2 {
		t.Fatalf("got %+v", m)
	}
	e := m.Events[0]
	if string(e.Raw) != encode(event) || len(e.Fields) != 7 {
		t.Errorf("%d fields, raw %q", len(e.Fields), e.Raw)
	}
	for name, want := range map[string]string{
		FieldObjectKey: `b"k"`, FieldGroupID: `""`, FieldMedium: "nil", FieldTenantID: "absent", FieldEventType: `"cleared"`,
		"new": `{"x": [1, -1, ext(5, "abcd")]}`, "other": "true", "none": "absent",
	} {
		if got := e.Get(name).String(); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	unknown := e.Unknown()
	if len(unknown) != 2 || string(unknown[0].Name) != "new" || string(unknown[1].Name) != "other" {
		t.Errorf("unknown: %v", unknown)
	}
	if e.Get("none").Kind() != KindAbsent || e.Get(FieldMedium).Kind() != KindNil || e.Get(FieldGroupID).Kind() != KindString {
		t.Error("absent, nil and empty are not told apart")
	}
}

// TestDecodeDamaged checks how much is shown of damaged messages.
func TestDecodeDamaged(t *testing.T) {
	cleared := object{"type", "AllBlocksCleared"}
	whole := payloadOf(cleared, with(), cleared)
	for _, test := range []struct {
		name   string
		frames [][]byte
		cause  Cause
		events string // the number of fields of each event
		rank   string
	}{
		{"no frames", nil, FrameCount, "", "absent"},
		{"sequence number", [][]byte{nil, nil, []byte(whole)}, SeqFrameSize, "1 6 1", "0"},
		{"sequence number and event", [][]byte{nil, nil, []byte(payloadOf(cleared, object{}, cleared))}, SeqFrameSize, "1 0", "absent"},
		{"event type", message(payloadOf(cleared, with("event_type", "moved"), cleared)), EventType, "1 7", "absent"},
		{"no map", message(payloadOf(cleared, 5, cleared)), Malformed, "1 0", "absent"},
		{"cut in the second event", message(whole[:len(whole)-27]), Cut, "1 5", "absent"},
		{"trailing", message(whole + "x"), Trailing, "1 6 1", "0"},
		{"time", message(encode(list{nil, list{cleared}, 0})), Time, "", "absent"},
		{"behind the events", message(encode(list{1, list{cleared}, object{1, 1}})), MapKey, "1", "absent"},
		{"empty", message(""), Cut, "", "absent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := Decode(test.frames)
			var damage *DamageError
			if !errors.As(err, &damage) || damage.Cause != test.cause {
				t.Fatalf("error %v", err)
			}
			var counts []string
			for _, e := range m.Events {
				counts = append(counts, fmt.Sprint(len(e.Fields)))
			}
			if got := strings.Join(counts, " "); got != test.events {
				t.Errorf("fields of events: %q, want %q", got, test.events)
			}
			if m.DPRank.String() != test.rank {
				t.Errorf("dp_rank %v", m.DPRank)
			}
		})
	}
}

func TestValues(t *testing.T) {
	show := func(v Value) string {
		b, isText := v.Bytes()
		u, isUint := v.Uint64()
		i, isInt := v.Int64()
		f, isFloat := v.Float64()
		is, isBool := v.Bool()
		_, isArray := v.Array()
		_, isMap := v.Map()
		return fmt.Sprintf("%d %q %v %d %v %d %v %g %v %v %v %v %v", v.Kind(), b, isText, u, isUint, i, isInt, f, isFloat, is, isBool, isArray, isMap)
	}
	for _, test := range []struct {
		value any
		want  string
		shown string
	}{
		{raw(""), `0 "" false 0 false 0 false 0 false false false false false`, "absent"},
		{raw("\xc1"), `0 "" false 0 false 0 false 0 false false false false false`, "absent"},
		{raw("\xa5abc"), `0 "" false 0 false 0 false 0 false false false false false`, "absent"},
		{nil, `1 "" false 0 false 0 false 0 false false false false false`, "nil"},
		{true, `2 "" false 0 false 0 false 0 false true true false false`, "true"},
		{false, `2 "" false 0 false 0 false 0 false false true false false`, "false"},
		{5, `3 "" false 5 true 5 true 0 false false false false false`, "5"},
		{uint64(1 << 63), `3 "" false 9223372036854775808 true 0 false 0 false false false false false`, "9223372036854775808"},
		{-5, `4 "" false 0 false -5 true 0 false false false false false`, "-5"},
		{int64Bytes(5), `4 "" false 5 true 5 true 0 false false false false false`, "5"},
		{1.5, `5 "" false 0 false 0 false 1.5 true false false false false`, "1.5"},
		{"a\xff", `6 "a\xff" true 0 false 0 false 0 false false false false false`, `"a\xff"`},
		{[]byte("a"), `7 "a" true 0 false 0 false 0 false false false false false`, `b"a"`},
		{list{1, "x"}, `8 "" false 0 false 0 false 0 false false false true false`, `[1, "x"]`},
		{object{"a", 1, "b", nil}, `9 "" false 0 false 0 false 0 false false false false true`, `{"a": 1, "b": nil}`},
		{extension, `10 "" false 0 false 0 false 0 false false false false false`, `ext(5, "abcd")`},
	} {
		v := Value(encode(test.value))
		if got := show(v); got != test.want {
			t.Errorf("%v:\n got %s\nwant %s", test.value, got, test.want)
		}
		if got := v.String(); got != test.shown {
			t.Errorf("shown as %s, want %s", got, test.shown)
		}
	}
}
