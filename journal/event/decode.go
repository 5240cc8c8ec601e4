package event

// Message is a message with everything that it holds, for display. Scan is for everything else.
type Message struct {
	Topic  []byte // always empty in the streams of real publishers; no rule depends on it
	HasSeq bool   // as in Batch
	Seq    uint64

	Time   Value   // the batch timestamp as it was sent
	Events []Full  // in their order
	DPRank Value   // the third element of the payload; absent if it has but two
	Extra  []Value // elements of the payload behind the third, which no known publisher sends
}

// Full is one event with all its fields. Absent, nil and empty ones are told apart by Value.Kind.
type Full struct {
	Raw    Value   // the event as it was sent
	Fields []Field // as they were sent: in their order, unknown and duplicate ones included; nil if Raw is no map
}

// Get returns the value of a field: one of the Field… names, or any other. It is absent if the field is, and that of the
// last of duplicates.
func (f *Full) Get(name string) Value {
	for i := len(f.Fields) - 1; i >= 0; i-- {
		if string(f.Fields[i].Name) == name {
			return f.Fields[i].Value
		}
	}
	return nil
}

// Unknown returns the fields that the guide does not name, in their order.
func (f *Full) Unknown() []Field {
	var unknown []Field
	for _, field := range f.Fields {
		if !knownField(string(field.Name)) {
			unknown = append(unknown, field)
		}
	}
	return unknown
}

// knownField says whether the guide names the field.
func knownField(name string) bool {
	switch name {
	case FieldEventID, FieldTimestamp, FieldEventType, FieldLegacyType, FieldModelName, FieldBlockSize,
		FieldAdditionalSalt, FieldLoraName, FieldTenantID, FieldBackendID, FieldMedium, FieldDPRank, FieldGroupID,
		FieldObjectKey, FieldSeqHashes, FieldBlockHashes, FieldBaseBlockIdx, FieldParentHash, FieldTokenIDs,
		FieldParentBlockHash:
		return true
	}
	return false
}

// Decode reads a message in full. Its result aliases the frames.
//
// The error is a *DamageError, with the same cause and place as Scan gives, or nil. With an error too the Message is
// not nil: it holds what stands before the damage, and of the event in which the damage shows as much as can be read.
func Decode(frames [][]byte) (*Message, error) {
	var b Batch
	b.Scan(frames)
	m := &Message{HasSeq: b.HasSeq, Seq: b.Seq}
	if len(frames) > 0 {
		m.Topic = frames[0]
	}
	if len(frames) == frameCount {
		m.read(frames[framePayload])
	}
	return m, b.Err()
}

// read fills in what the payload holds.
func (m *Message) read(payload []byte) {
	s := scanner{payload: payload}
	s.batch(&Batch{})
	damageAt := len(payload)
	if s.damage != None {
		damageAt = s.at
	}
	h, cause := readHeader(payload, 0)
	if cause != None || h.kind != KindArray {
		return
	}
	i := h.body
	for n := range h.size {
		start := i
		if n == 1 {
			if i = m.readEvents(&s, i, damageAt); i < 0 {
				return
			}
			continue
		}
		if i = s.skip(i, payloadDepth+1); i < 0 {
			return
		}
		value := Value(payload[start:i:i])
		switch n {
		case 0:
			m.Time = value
		case 2:
			m.DPRank = value
		default:
			m.Extra = append(m.Extra, value)
		}
		if damageAt < i {
			return
		}
	}
}

// readEvents reads the events up to the one in which damage shows. It returns the index behind them, or -1.
func (m *Message) readEvents(s *scanner, i, damageAt int) int {
	h, cause := readHeader(s.payload, i)
	if cause != None || h.kind != KindArray {
		return -1
	}
	i = h.body
	for range h.size {
		start := i
		h, cause := readHeader(s.payload, i)
		if cause != None {
			return -1
		}
		var e Full
		if h.kind == KindMap {
			e.Fields, i = s.fields(h, eventDepth)
		} else {
			i = s.skipContent(h, eventDepth)
		}
		end := i
		if i < 0 {
			end = len(s.payload) // what could not be read to its end is shown to the end of the message
		}
		e.Raw = s.payload[start:end:end]
		m.Events = append(m.Events, e)
		if i < 0 || damageAt < i {
			return -1
		}
	}
	return i
}
