package query

import (
	"slices"
	"strconv"
)

// AppendJSON implements JSONAppender: the same as MarshalJSON, but for how control characters are escaped. Answers come by the thousand.
func (a *Answer) AppendJSON(dst []byte) []byte {
	dst = a.Name.appendJSON(append(dst, '{'))
	dst = strconv.AppendBool(append(dst, `"present":`...), a.Present)
	dst = append(append(append(dst, `,"certainty":"`...), a.Certainty...), `","media":{`...)
	var few [8]string
	names := few[:0]
	for name := range a.Media {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		m := a.Media[name]
		dst = m.appendJSON(append(appendString(dst, name), ':'))
	}
	dst = a.AsOf.appendJSON(append(dst, `},"as_of":`...))
	if a.Silent {
		dst = append(dst, `,"silent":true`...)
	}
	return append(dst, '}')
}

func (m *MediumOut) appendJSON(dst []byte) []byte {
	dst = append(append(append(dst, `{"state":"`...), m.State...), `","certainty":"`...)
	dst = append(append(dst, m.Certainty...), `",`...)
	if e := m.Evidence; e != nil {
		dst = appendUint(append(dst, `"evidence":{`...), "offset", e.Offset)
		dst = appendUint(dst, "epoch", e.Epoch)
		dst = appendUint(dst, "seq", e.Seq)
		if e.EventID != nil {
			dst = appendUint(dst, "event_id", *e.EventID)
		}
		dst = e.Time.append(dst, "time")
		dst = e.Received.append(dst, "received")
		dst = append(append(append(dst, `"cause":"`...), e.Cause...), `"},`...)
	}
	if d := m.Doubt; d != nil {
		dst = append(append(append(dst, `"doubt":{"cause":"`...), d.Cause...), `",`...)
		if d.Offset != 0 {
			dst = appendUint(dst, "offset", d.Offset)
		}
		dst = append(endObject(d.Time.append(dst, "time")), ',')
	}
	return endObject(dst)
}

func (a *AsOf) appendJSON(dst []byte) []byte {
	dst = appendUint(append(dst, '{'), "offset", a.Offset)
	dst = a.Time.append(dst, "time")
	dst = a.Received.append(dst, "received")
	if a.AgeMs != nil {
		dst = append(strconv.AppendInt(append(dst, `"age_ms":`...), *a.AgeMs, 10), ',')
	}
	return append(strconv.AppendBool(append(dst, `"live":`...), a.Live), '}')
}

// append appends "name":"…" and a comma; nothing where there is no time.
func (t *Time) append(dst []byte, name string) []byte {
	if t == nil {
		return dst
	}
	return appendTime(dst, name, t.UnixMilli())
}
