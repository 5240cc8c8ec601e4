package event

import "unicode/utf8"

// knownEvent reads the event map at index start if it has exactly the fields of the real publisher, in its order (the
// order of the encoder), with the values that one expects. It returns the index behind the map, or -1 if anything is
// different, in which case e means nothing and anyEvent must read the map: so this function decides nothing about
// damage, it is only faster. What it accepts has no duplicate fields and no nesting, and would be read the same by
// anyEvent.
func knownEvent(p []byte, start int, e *Event) int {
	q := p[start:]
	fields := 0
	switch {
	case len(q) > 3 && q[0] == 0xde && q[1] == 0: // map16
		fields, q = int(q[2]), q[3:]
	case len(q) > 1 && q[0]&0xf0 == 0x80: // fixmap
		fields, q = int(q[0]&0x0f), q[1:]
	default:
		return -1
	}

	const envelope = 11 // fields without the legacy type
	switch fields {
	case envelope, envelope + 1: // cleared; the second with the legacy type
	case envelope + 4: // removed
	case envelope + 6: // stored, or removed with its two legacy fields
	case envelope + 9: // stored with its three legacy fields
	default:
		return -1 // at once, so that publishers with another set of fields do not pay for the attempt
	}

	const eventID = "\xa8event_id"
	if len(q) < len(eventID) || string(q[:len(eventID)]) != eventID {
		return -1
	}
	var ok bool
	if e.ID, q, ok = knownUint(q[len(eventID):]); !ok {
		return -1
	}
	e.HasID = true

	const timestamp = "\xa9timestamp"
	if len(q) < len(timestamp) || string(q[:len(timestamp)]) != timestamp {
		return -1
	}
	if q, ok = knownUnused(q[len(timestamp):]); !ok {
		return -1
	}

	// The type decides how many fields follow the envelope.
	const eventType = "\xaaevent_type"
	if len(q) < len(eventType)+1+len(nameStored) || string(q[:len(eventType)]) != eventType {
		return -1
	}
	const stored, removed, cleared = "\xa6stored", "\xa7removed", "\xa7cleared"
	legacy := ""
	q = q[len(eventType):]
	switch {
	case string(q[:len(stored)]) == stored:
		e.Type, legacy, q = Stored, "\xa4type\xabBlockStored", q[len(stored):]
	case len(q) < len(removed):
		return -1
	case string(q[:len(removed)]) == removed:
		e.Type, legacy, q = Removed, "\xa4type\xacBlockRemoved", q[len(removed):]
	case string(q[:len(cleared)]) == cleared:
		e.Type, legacy, q = Cleared, "\xa4type\xb0AllBlocksCleared", q[len(cleared):]
	default:
		return -1
	}
	expected := envelope
	isLegacy := len(q) > len(legacy) && string(q[:len(legacy)]) == legacy
	if isLegacy {
		q = q[len(legacy):]
		expected++
	}

	const modelName = "\xaamodel_name"
	if len(q) < len(modelName) || string(q[:len(modelName)]) != modelName {
		return -1
	}
	if _, q, ok = knownText(q[len(modelName):]); !ok {
		return -1
	}
	const blockSize = "\xaablock_size"
	if len(q) < len(blockSize) || string(q[:len(blockSize)]) != blockSize {
		return -1
	}
	if q, ok = knownUnused(q[len(blockSize):]); !ok {
		return -1
	}

	// Most publishers have neither salt nor adapter.
	const neither = "\xafadditional_salt\xc0\xa9lora_name\xc0\xa9tenant_id"
	if len(q) >= len(neither) && string(q[:len(neither)]) == neither {
		q = q[len(neither):]
	} else {
		const salt, lora, tenant = "\xafadditional_salt", "\xa9lora_name", "\xa9tenant_id"
		if len(q) < len(salt) || string(q[:len(salt)]) != salt {
			return -1
		}
		if _, q, ok = knownText(q[len(salt):]); !ok {
			return -1
		}
		if len(q) < len(lora) || string(q[:len(lora)]) != lora {
			return -1
		}
		if _, q, ok = knownText(q[len(lora):]); !ok {
			return -1
		}
		if len(q) < len(tenant) || string(q[:len(tenant)]) != tenant {
			return -1
		}
		q = q[len(tenant):]
	}
	if e.Tenant, q, ok = knownText(q); !ok {
		return -1
	}
	if len(e.Tenant) == 0 {
		e.Tenant = defaultTenant
	}

	const backend = "\xaabackend_id"
	if len(q) < len(backend) || string(q[:len(backend)]) != backend {
		return -1
	}
	if e.Backend, q, ok = knownText(q[len(backend):]); !ok {
		return -1
	}
	const medium = "\xa6medium"
	if len(q) < len(medium) || string(q[:len(medium)]) != medium {
		return -1
	}
	if e.Medium, q, ok = knownText(q[len(medium):]); !ok {
		return -1
	}
	const dpRank = "\xa7dp_rank"
	if len(q) < len(dpRank) || string(q[:len(dpRank)]) != dpRank {
		return -1
	}
	if q, ok = knownUnused(q[len(dpRank):]); !ok {
		return -1
	}

	if e.Type == Cleared {
		e.Key, e.Medium, e.Group = nil, nil, nil
		if fields != expected {
			return -1
		}
		return len(p) - len(q)
	}

	const group = "\xa8group_id"
	if len(q) < len(group) || string(q[:len(group)]) != group {
		return -1
	}
	if e.Group, q, ok = knownText(q[len(group):]); !ok {
		return -1
	}
	const key = "\xaaobject_key"
	if len(q) < len(key) || string(q[:len(key)]) != key {
		return -1
	}
	if e.Key, q, ok = knownText(q[len(key):]); !ok || len(e.Key) == 0 {
		return -1
	}
	if m := e.Medium; string(m) != "cpu" && string(m) != "disk" && (len(m) == 0 || !utf8.Valid(m)) {
		return -1
	}

	// What remains is the same in every event of the same type: Store interprets no keys.
	const (
		hashes    = "\xaaseq_hashes\x90"
		blocks    = "\xacblock_hashes\x90"
		index     = "\xaebase_block_idx\xc0"
		parent    = "\xabparent_hash\xc0\xa9token_ids\xc0"
		oldParent = "\xb1parent_block_hash\xc0"
	)
	tail, count := "", 0
	switch {
	case e.Type == Stored && isLegacy:
		tail, count = hashes+blocks+index+parent+oldParent, 8
	case e.Type == Stored:
		tail, count = hashes+index+parent, 6
	case isLegacy:
		tail, count = hashes+blocks+index, 5
	default:
		tail, count = hashes+index, 4
	}
	if fields != expected+count || len(q) < len(tail) || string(q[:len(tail)]) != tail {
		return -1
	}
	return len(p) - len(q) + len(tail)
}

// knownUint reads an unsigned integer at the start of q and returns what follows it.
func knownUint(q []byte) (uint64, []byte, bool) {
	if len(q) == 0 {
		return 0, nil, false
	}
	c := q[0]
	if c <= 0x7f {
		return uint64(c), q[1:], true
	}
	if c < 0xcc || c > 0xcf {
		return 0, nil, false
	}
	size := 1 << (c - 0xcc)
	if q = q[1:]; len(q) < size {
		return 0, nil, false
	}
	n := uint64(0)
	for _, b := range q[:size] {
		n = n<<8 | uint64(b)
	}
	return n, q[size:], true
}

// knownUnused passes over nil or an unsigned integer at the start of q and returns what follows it.
func knownUnused(q []byte) ([]byte, bool) {
	if len(q) == 0 {
		return nil, false
	}
	size := 1
	if c := q[0]; c > 0x7f && c != 0xc0 {
		if c < 0xcc || c > 0xcf {
			return nil, false
		}
		if size += 1 << (c - 0xcc); len(q) < size {
			return nil, false
		}
	}
	return q[size:], true
}

// knownText reads nil, as nil, or a str of less than 64 KiB, never as nil, at the start of q and returns what follows
// it.
func knownText(q []byte) (text, rest []byte, ok bool) {
	if len(q) == 0 {
		return nil, nil, false
	}
	size, c := 0, q[0]
	switch {
	case c == 0xc0:
		return nil, q[1:], true
	case c&0xe0 == 0xa0:
		size, q = int(c&0x1f), q[1:]
	case c == 0xd9 && len(q) >= 2:
		size, q = int(q[1]), q[2:]
	case c == 0xda && len(q) >= 3:
		size, q = int(q[1])<<8|int(q[2]), q[3:]
	default:
		return nil, nil, false
	}
	if len(q) < size {
		return nil, nil, false
	}
	return q[:size:size], q[size:], true
}
