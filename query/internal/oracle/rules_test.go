package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/event"
)

// script makes records of a text, one for each part between bars:
//
//	7@10 1+a 2-b:disk 3!   message seq 7, publisher time 10 ms, events: 1 stored a on cpu, 2 removed b on disk, 3 cleared
//	7@10 _+a               the event has no id
//	7@10 bad               damaged, seq readable
//	junk                   damaged, seq unreadable
//	again                  the last message again
//	D, C                   disconnected, connected
//
// All is received at 1 s.
func script(t *testing.T, text string) []capture.Record {
	t.Helper()
	var all []capture.Record
	var last [][]byte
	message := func(frames ...[]byte) {
		last = frames
		all = append(all, capture.Record{Kind: capture.Message, Received: 1e9, Frames: frames})
	}
	for _, part := range strings.Split(text, "|") {
		words := strings.Fields(part)
		switch words[0] {
		case "D":
			all = append(all, capture.Record{Kind: capture.Disconnected, Received: 1e9})
		case "C":
			all = append(all, capture.Record{Kind: capture.Connected, Received: 1e9})
		case "junk":
			message([]byte{}, []byte("short"), []byte{})
		case "again":
			message(last...)
		default:
			var b outgoing
			if _, err := fmt.Sscanf(words[0], "%d@%d", &b.seq, &b.time); err != nil {
				t.Fatalf("%q: %v", part, err)
			}
			seq := event.SeqFrame(b.seq)
			payload := appendArray(appendUint(appendArray(nil, 2), uint64(b.time)), len(words)-1)
			for _, w := range words[1:] {
				payload = append(payload, scriptEvent(t, w)...)
			}
			message([]byte{}, seq[:], payload)
		}
	}
	return all
}

func scriptEvent(t *testing.T, word string) []byte {
	t.Helper()
	if word == "bad" {
		return []byte{0xc1}
	}
	at := strings.IndexAny(word, "+-!")
	id, key, medium := word[:at], word[at+1:], "cpu"
	if k, m, ok := strings.Cut(key, ":"); ok {
		key, medium = k, m
	}
	kind := map[byte]event.Type{'+': event.Stored, '-': event.Removed, '!': event.Cleared}[word[at]]
	fields := []field{{"event_type", appendStr(nil, kind.String())}}
	if id != "_" {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		fields = append(fields, field{"event_id", appendUint(nil, n)})
	}
	if kind != event.Cleared {
		fields = append(fields, field{"object_key", appendStr(nil, key)}, field{"medium", appendStr(nil, medium)})
	}
	return appendEvent(nil, fields)
}

// ask answers a question "o7 a", "t10 a:disk" or "now a" as "present", "absent", and either with " ?" where not confirmed.
func ask(t *testing.T, o *Oracle, question string) string {
	t.Helper()
	when, key, _ := strings.Cut(question, " ")
	medium := "cpu"
	if k, m, ok := strings.Cut(key, ":"); ok {
		key, medium = k, m
	}
	obj := Object{"", event.DefaultTenant, key}
	var s State
	if when == "now" {
		s = o.Latest(obj, medium)
	} else {
		n, err := strconv.ParseInt(when[1:], 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", question, err)
		}
		if when[0] == 'o' {
			s = o.AtOffset(uint64(n), obj, medium)
		} else {
			s = o.AtTime(n, obj, medium)
		}
	}
	word := "absent"
	if s.Present {
		word = "present"
	}
	if !s.Confirmed {
		word += " ?"
	}
	return word
}

func gapText(g Gap) string {
	text := fmt.Sprintf("%s e%d", g.Cause, g.Epoch)
	if g.First > 0 {
		text += fmt.Sprintf(" %d-%d/%d", g.First, g.Last, g.Missing)
	}
	switch {
	case g.LostExact:
		text += fmt.Sprintf(" lost %d", g.LostMin)
	case g.LostKnown:
		text += fmt.Sprintf(" lost %d-%d", g.LostMin, g.LostMax)
	}
	return text + fmt.Sprintf(" @%d-%d", g.Before, g.After)
}

// full is a message of 64 events, of which the last removes z.
func full(seq, time, id int) string {
	text := fmt.Sprintf("%d@%d", seq, time)
	for i := range 63 {
		text += fmt.Sprintf(" %d+f", id+i)
	}
	return text + fmt.Sprintf(" %d-z", id+63)
}

// TestRules holds single rules against the oracle. Each answer is "question = state".
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, script string
		answers      []string
		gaps         []string
	}{
		{"first batch at seq 1 is evidence", "C | 1@10 1+a | 2@20 2+b",
			[]string{"o2 a = present", "o2 b = absent ?", "now b = present", "o1 a = absent ?", "o99 b = present"}, nil},
		{"late join stands in the shadow", "C | 5@10 9+a | 6@20 10+b",
			[]string{"now a = present ?", "now b = present"}, []string{"late_join e1 1-4/4 @0-2"}},
		{"queue gap", "1@10 1+a | 5@20 2+b | 6@30 3+c",
			[]string{"o1 a = present", "now a = present ?", "now b = present ?", "now c = present"},
			[]string{"publisher_queue e1 2-4/3 lost 3 @1-2"}},
		{"transport gap", "1@10 1+a | 5@20 8+b", nil, []string{"transport e1 2-4/3 lost 6-8 @1-2"}},
		{"transport gap of full batches", "1@10 1+a | 4@20 130+b", nil, []string{"transport e1 2-3/2 lost 128-128 @1-2"}},
		{"gap without ids", "1@10 _+a | 2@15 _+b | 5@20 8+b", []string{"o2 b = present"}, []string{"unknown e1 3-4/2 @2-3"}},
		{"restart at seq 1", "1@10 1+a | 2@20 2+b | 1@30 1+c",
			[]string{"now a = present ?", "now c = present", "t25 b = present ?"}, []string{"publisher_restart e2 @2-3"}},
		{"restart at seq 3", "4@10 1+a | 3@30 4+c | 4@40 5+d",
			[]string{"now c = present ?", "now d = present"}, []string{"late_join e1 1-3/3 @0-1", "publisher_restart e2 1-2/2 @1-2"}},
		{"restart by event_id", "1@10 5+a | 7@30 5+c", nil, []string{"publisher_restart e2 1-6/6 @1-2"}},
		{"restart by a jump of event_id", "1@10 5+a | 2@30 9+c", nil, []string{"publisher_restart e2 1-1/1 @1-2"}},
		{"reconnect", "C | 1@10 1+a | D | C | 2@20 2+b | 3@30 3+c",
			[]string{"o2 a = present", "o3 a = present", "o4 a = present", "o5 a = present ?", "o5 b = present ?", "now c = present",
				"t15 a = present ?"},
			[]string{"reconnect e1 @2-5"}},
		{"reconnect with loss", "C | 1@10 1+a | D | C | 9@20 40+b", nil, []string{"disconnected e1 2-8/7 @2-5"}},
		{"reconnect to a new process at seq 1", "C | 1@10 1+a | D | C | 1@20 1+b",
			[]string{"now b = present"}, []string{"publisher_restart e2 @2-5"}},
		{"connected alone is a new connection", "C | 1@10 1+a | C | 2@20 2+b", []string{"now b = present ?"}, []string{"reconnect e1 @2-4"}},
		{"open window", "C | 1@10 1+a | D | 2@20 2+b | 3@30 3+c",
			[]string{"o3 a = present", "o4 a = present ?", "o5 c = present ?", "t25 b = present ?", "now a = present", "now c = absent ?"},
			nil},
		{"closed window", "C | 1@10 1+a | D | 2@20 2+b | 3@30 3+c | C | 4@40 4+d | 5@50 5+e",
			[]string{"o6 c = present ?", "o7 c = present ?", "o7 d = present ?", "now e = present", "t25 b = present ?", "t35 c = present ?"},
			[]string{"reconnect e1 @5-7"}},
		{"duplicate", "1@10 1+a | again | 2@20 2-a", []string{"now a = absent", "o2 a = present"}, nil},
		{"duplicate across a connection", "1@10 1+a | D | again | C | again | 2@20 2+b",
			[]string{"o3 a = present", "o5 a = present", "now b = present ?"}, []string{"reconnect e1 @1-6"}},
		{"damage, seq readable", "1@10 1+a | 2@20 bad | 3@30 9+b",
			[]string{"o2 a = present ?", "now b = present", "t25 a = present ?"}, []string{"damaged e1 2-2/0 @1-2"}},
		{"damage, seq unreadable", "1@10 1+a | junk | 3@30 3+b | 4@40 4+c",
			[]string{"o2 a = present ?", "now b = present ?", "now c = present"},
			[]string{"damaged e1 @1-2", "transport e1 2-2/1 lost 1-1 @2-3"}},
		{"clear", "1@10 1+a 2+b 3-c | 2@20 4-a 5!",
			[]string{"now a = absent", "now b = absent ?", "now c = absent", "now never = absent", "now b:disk = absent", "o1 never = absent ?"}, nil},
		{"clear wipes through the next clear", "1@10 1+b | 2@20 2! | 3@30 3! | 4@40 4-b",
			[]string{"o3 b = absent ?", "now b = absent"}, nil},
		{"order inside a batch", "1@10 1+a 2! 3+b | 2@20 4+c 5-c", []string{"o1 a = absent ?", "now b = present", "now c = absent"}, nil},
		{"clear renews a proof behind a gap", "1@10 1-a | 4@20 2+b | 5@30 3!", []string{"o2 a = absent ?", "now a = absent", "now b = absent ?"},
			[]string{"publisher_queue e1 2-3/2 lost 2 @1-2"}},
		{"clears of a keyless process", "1@10 1! | 2@20 2!", []string{"now a = absent ?"}, nil},
		{"keyless behind a connection", "1@10 1+a 2-b | D | C | 9@20 30! | 10@30 31!", []string{"now b = absent ?", "now never = absent ?"},
			[]string{"disconnected e1 2-8/7 @1-4"}},
		{"full batch", full(1, 10, 1) + " | 2@20 65+z",
			[]string{"o1 z = absent ?", "o1 z:disk = absent ?", "o1 f = present", "t15 z = absent ?", "now z = present"}, nil},
		{"moments", "1@10 1+a | 2@20 2-a | 3@30 3+a",
			[]string{"t9 a = absent ?", "t10 a = present", "t19 a = present", "t20 a = absent", "t29 a = absent", "t30 a = present ?"}, nil},
		{"the clock passes twice", "1@10 1+a | 2@30 2-a | 3@20 3+a | 4@40 4-a",
			[]string{"t10 a = present", "t19 a = present", "t20 a = present ?", "t29 a = present ?", "t30 a = present"}, nil},
		{"a time too far ahead", "1@10 1+a | 2@9000000 2-a | 3@30 3+b",
			[]string{"t10 a = absent", "t29 a = absent", "t9 a = absent ?"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := New()
			for _, r := range script(t, c.script) {
				o.Apply(r)
			}
			for _, a := range c.answers {
				question, want, _ := strings.Cut(a, " = ")
				if got := ask(t, o, question); got != want {
					t.Errorf("%s = %s, want %s", question, got, want)
				}
			}
			var got []string
			for _, g := range o.Gaps() {
				got = append(got, gapText(g))
			}
			if !slices.Equal(got, c.gaps) {
				t.Errorf("gaps %q, want %q", got, c.gaps)
			}
		})
	}
}

// TestListings: what a test asks about.
func TestListings(t *testing.T) {
	o := New()
	for _, r := range script(t, "1@10 1+b 2+a:nvm 3! | 2@20 4-a:disk") {
		o.Apply(r)
	}
	if got := fmt.Sprint(o.Objects()); got != "[{ default a} { default b}]" {
		t.Errorf("Objects: %s", got)
	}
	if got := fmt.Sprint(o.Media(o.Objects()[0]), o.Media(o.Objects()[1])); got != "[cpu disk nvm] [cpu disk]" {
		t.Errorf("Media: %s", got)
	}
	if got := fmt.Sprint(o.Times()); got != "[9 10 11 19 20 21]" {
		t.Errorf("Times: %s", got)
	}
}
