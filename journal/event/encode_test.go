package event

import (
	"fmt"
	"strings"
	"testing"
)

var allOptions = []EncodeOptions{
	{}, {LegacyCompat: true}, {ObjectKey: true}, {LegacyCompat: true, ObjectKey: true},
}

// TestEncodedBytes compares with the bytes of the real publisher: the order of fields, the encodings, and which fields
// exist are those of a capture.
func TestEncodedBytes(t *testing.T) {
	events := []Fields{
		{Type: Stored, ID: 1, Timestamp: 0x01a2_290d_0c2a, ModelName: pointer("m"), BlockSize: 64, Tenant: "t", Backend: "b",
			Medium: "cpu", GroupID: pointer("g"), Key: "k"},
		{Type: Removed, ID: 300, Timestamp: 0x01a2_290d_0c2a, Salt: pointer(""), LoraName: pointer("l"), DPRank: 5, Tenant: "t",
			Backend: "b", Medium: "disk", Key: "\xff"},
		{Type: Cleared, ID: 70_000, Timestamp: 0x01a2_290d_0c2a, Tenant: "t", Backend: "b", Medium: "ignored", Key: "ignored"},
	}
	const (
		head    = "\x93\xcf\x00\x00\x01\xa2\x29\x0d\x0c\x2a\x93"
		stamp   = "\xa9timestamp\xcf\x00\x00\x01\xa2\x29\x0d\x0c\x2a"
		first   = "\xa8event_id\x01" + stamp
		second  = "\xa8event_id\xcd\x01\x2c" + stamp
		third   = "\xa8event_id\xce\x00\x01\x11\x70" + stamp
		none    = "\xaamodel_name\xc0\xaablock_size\xc0"
		place   = "\xa9tenant_id\xa1t\xaabackend_id\xa1b"
		stored  = "\xaamodel_name\xa1m\xaablock_size\x40\xafadditional_salt\xc0\xa9lora_name\xc0" + place + "\xa6medium\xa3cpu\xa7dp_rank\x00"
		removed = none + "\xafadditional_salt\xa0\xa9lora_name\xa1l" + place + "\xa6medium\xa4disk\xa7dp_rank\x05"
		cleared = none + "\xafadditional_salt\xc0\xa9lora_name\xc0" + place + "\xa6medium\xc0\xa7dp_rank\x00"
	)
	for _, test := range []struct {
		options EncodeOptions
		want    string
	}{
		{EncodeOptions{LegacyCompat: true, ObjectKey: true}, head +
			"\xde\x00\x14" + first + "\xaaevent_type\xa6stored\xa4type\xabBlockStored" + stored +
			"\xa8group_id\xa1g\xaaobject_key\xa1k\xaaseq_hashes\x90\xacblock_hashes\x90\xaebase_block_idx\xc0" +
			"\xabparent_hash\xc0\xa9token_ids\xc0\xb1parent_block_hash\xc0" +
			"\xde\x00\x11" + second + "\xaaevent_type\xa7removed\xa4type\xacBlockRemoved" + removed +
			"\xa8group_id\xc0\xaaobject_key\xa1\xff\xaaseq_hashes\x90\xacblock_hashes\x90\xaebase_block_idx\xc0" +
			"\x8c" + third + "\xaaevent_type\xa7cleared\xa4type\xb0AllBlocksCleared" + cleared +
			"\x05"},
		{EncodeOptions{ObjectKey: true}, head +
			"\xde\x00\x11" + first + "\xaaevent_type\xa6stored" + stored +
			"\xa8group_id\xa1g\xaaobject_key\xa1k\xaaseq_hashes\x90\xaebase_block_idx\xc0\xabparent_hash\xc0\xa9token_ids\xc0" +
			"\x8f" + second + "\xaaevent_type\xa7removed" + removed +
			"\xa8group_id\xc0\xaaobject_key\xa1\xff\xaaseq_hashes\x90\xaebase_block_idx\xc0" +
			"\x8b" + third + "\xaaevent_type\xa7cleared" + cleared +
			"\x05"},
	} {
		got := NewEncoder(test.options).AppendPayload(nil, 0x01a2_290d_0c2a, events, 5)
		if string(got) != test.want {
			t.Errorf("%+v:\n got %q\nwant %q", test.options, got, test.want)
		}
	}
}

// TestRoundTrip encodes events with all flags and reads them back with Scan and with Decode.
func TestRoundTrip(t *testing.T) {
	var events []Fields
	for i, key := range []string{"k", "", "\xff\x00", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 255),
		strings.Repeat("x", 256), strings.Repeat("x", 65_535), strings.Repeat("x", 65_536)} {
		for j, id := range []uint64{0, 127, 128, 255, 256, 65_535, 65_536, 1<<32 - 1, 1 << 32, 1<<64 - 1} {
			f := Fields{Type: Type(1 + (i+j)%3), ID: id, Timestamp: int64(id), Tenant: "tenant" + key, Backend: key, Medium: "cpu",
				Key: "key" + key, BlockSize: uint32(id), DPRank: uint32(i)}
			if j%2 == 0 {
				f.GroupID, f.ModelName, f.Salt, f.LoraName = &key, &key, pointer("salt"), pointer("lora")
			}
			events = append(events, f)
		}
	}
	for _, options := range allOptions {
		payload := NewEncoder(options).AppendPayload([]byte("before"), -5, events, 1<<32-1)[len("before"):]
		frames := message(string(payload))
		var b Batch
		b.Scan(frames)
		m, err := Decode(frames)
		if !options.ObjectKey {
			if b.Damage != Key || err == nil {
				t.Errorf("%+v: %v, %v", options, b.Damage, err)
			}
			continue
		}
		if b.Damage != None || err != nil || b.Time != -5 || len(b.Events) != len(events) || len(m.Events) != len(events) {
			t.Fatalf("%+v: %v, %v, time %d, %d and %d events", options, b.Damage, err, b.Time, len(b.Events), len(m.Events))
		}
		for i, f := range events {
			if want := scanned(f); !sameEvent(b.Events[i], want) {
				t.Errorf("%+v, event %d: got %+v\nwant %+v", options, i, b.Events[i], want)
			}
			if want := shown(f, options); fieldsOf(m.Events[i]) != want {
				t.Errorf("%+v, event %d: got %s\nwant %s", options, i, fieldsOf(m.Events[i]), want)
			}
			if unknown := m.Events[i].Unknown(); unknown != nil {
				t.Errorf("unknown fields: %v", unknown)
			}
		}
		if rank, ok := m.DPRank.Uint64(); !ok || rank != 1<<32-1 || m.Extra != nil {
			t.Errorf("dp_rank %v, extra %v", m.DPRank, m.Extra)
		}
	}
}

// scanned is what Scan must make of the event.
func scanned(f Fields) Event {
	e := Event{Type: f.Type, HasID: true, ID: f.ID, Tenant: []byte(f.Tenant), Backend: []byte(f.Backend)}
	if f.Type != Cleared {
		e.Key, e.Medium = []byte(f.Key), []byte(f.Medium)
		if f.GroupID != nil {
			e.Group = append([]byte{}, *f.GroupID...)
		}
	}
	return e
}

// shown is what fieldsOf must show of the event: an independent listing of what the guide says.
func shown(f Fields, o EncodeOptions) string {
	var out strings.Builder
	text := func(name string, s *string) {
		if s == nil {
			fmt.Fprintf(&out, "%s=nil ", name)
			return
		}
		fmt.Fprintf(&out, "%s=%q ", name, *s)
	}
	name := f.Type.String()
	fmt.Fprintf(&out, "event_id=%d timestamp=%d event_type=%q ", f.ID, f.Timestamp, name)
	if o.LegacyCompat {
		legacy := map[string]string{"stored": "BlockStored", "removed": "BlockRemoved", "cleared": "AllBlocksCleared"}[name]
		text("type", &legacy)
	}
	text("model_name", f.ModelName)
	if f.BlockSize == 0 {
		text("block_size", nil)
	} else {
		fmt.Fprintf(&out, "block_size=%d ", f.BlockSize)
	}
	text("additional_salt", f.Salt)
	text("lora_name", f.LoraName)
	text("tenant_id", &f.Tenant)
	text("backend_id", &f.Backend)
	if f.Type == Cleared {
		text("medium", nil)
	} else {
		text("medium", &f.Medium)
	}
	fmt.Fprintf(&out, "dp_rank=%d ", f.DPRank)
	if f.Type == Cleared {
		return out.String()
	}
	text("group_id", f.GroupID)
	text("object_key", &f.Key)
	out.WriteString("seq_hashes=[] ")
	if o.LegacyCompat {
		out.WriteString("block_hashes=[] ")
	}
	out.WriteString("base_block_idx=nil ")
	if f.Type == Stored {
		out.WriteString("parent_hash=nil token_ids=nil ")
		if o.LegacyCompat {
			out.WriteString("parent_block_hash=nil ")
		}
	}
	return out.String()
}

func fieldsOf(f Full) string {
	var out strings.Builder
	for _, field := range f.Fields {
		fmt.Fprintf(&out, "%s=%v ", field.Name, field.Value)
	}
	return out.String()
}

// TestKnownOrder checks that the fast path reads what the encoder writes: it would otherwise be slow and still correct.
func TestKnownOrder(t *testing.T) {
	for _, options := range allOptions[2:] {
		for _, typ := range []Type{Stored, Removed, Cleared} {
			for _, salt := range []*string{nil, pointer("s")} {
				f := Fields{Type: typ, ID: 1, Timestamp: 2, Salt: salt, Tenant: "t", Backend: "b", Medium: "nvme", Key: "k"}
				payload := NewEncoder(options).AppendPayload(nil, 0, []Fields{f}, 0)
				const start = 3 // behind the payload's header, the time 0 and the events' header, of one byte each
				var e Event
				if end := knownEvent(payload, start, &e); end != len(payload)-1 || !sameEvent(e, scanned(f)) {
					t.Errorf("%+v, %v: end %d of %d, %+v", options, typ, end, len(payload), e)
				}
			}
		}
	}
}

func TestEncodeAllocations(t *testing.T) {
	events := benchmarkEvents()
	encoder := NewEncoder(EncodeOptions{LegacyCompat: true, ObjectKey: true})
	payload := encoder.AppendPayload(nil, 0, events, 0)
	if n := testing.AllocsPerRun(100, func() { payload = encoder.AppendPayload(payload[:0], 0, events, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestEncodeUnknownType(t *testing.T) {
	for _, typ := range []Type{0, Cleared + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("type %d: no panic", typ)
				}
			}()
			NewEncoder(EncodeOptions{}).AppendPayload(nil, 0, []Fields{{Type: typ}}, 0)
		}()
	}
}

func TestSeqFrame(t *testing.T) {
	if got := SeqFrame(0x0102030405060708); got != [8]byte{1, 2, 3, 4, 5, 6, 7, 8} {
		t.Errorf("%x", got)
	}
}
