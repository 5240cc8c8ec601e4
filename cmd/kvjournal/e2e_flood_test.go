package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/journal/event"
)

// flood is how much larger than usual the floods are: KVJOURNAL_FLOOD=20 for a measurement.
func flood() int {
	n, err := strconv.Atoi(os.Getenv("KVJOURNAL_FLOOD"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// mostResident is what a recorder may hold, in MiB, whatever it is sent. With four messages of 64 MiB it
// was 549, with the other floods less than 260.
const mostResident = 700

// TestFloods: a publisher sends what no publisher sends, as fast as it can. Each message that cannot be applied is counted and is a mark, the
// others are applied, what is valid behind a flood is known, memory stays bounded, and a rebuild finds the same.
func TestFloods(t *testing.T) {
	if testing.Short() {
		t.Skip("floods take long")
	}
	size := flood()
	rng := rand.New(rand.NewPCG(5, 5))
	for _, f := range []struct {
		name    string
		n       int
		damaged bool
		next    func(p *wire, i int) [][]byte
	}{
		{"garbage", 20_000 * size, true, func(p *wire, i int) [][]byte { return garbage(rng, p, i) }},
		{"bombs of 64 MiB", 4, true, func(p *wire, i int) [][]byte { p.seq++; return [][]byte{{}, p.number(), bomb(i)} }},
		{"tenants", 300 * size, false, func(p *wire, i int) [][]byte {
			return p.batch(64, func(e *event.Fields, n int) {
				e.Tenant, e.Backend = fmt.Sprintf("tenant-%d-%d-%s", i, n, strings.Repeat("t", 300)), fmt.Sprint("b", n)
			})
		}},
		{"media and groups", 300 * size, false, func(p *wire, i int) [][]byte {
			return p.batch(64, func(e *event.Fields, n int) {
				group := fmt.Sprintf("group-%d-%d", i, n)
				e.Medium, e.GroupID = fmt.Sprintf("medium-%d-%d", i, n), &group
			})
		}},
		{"clears", 300 * size, false, func(p *wire, i int) [][]byte {
			return p.batch(64, func(e *event.Fields, n int) { e.Type = event.Cleared })
		}},
		{"restarts", 10_000 * size, false, func(p *wire, i int) [][]byte {
			p.seq, p.id = 0, uint64(i) // another process each time
			return p.batch(1, func(e *event.Fields, n int) {})
		}},
		{"keys of 1 MB", 100 * size, false, func(p *wire, i int) [][]byte {
			return p.batch(1, func(e *event.Fields, n int) { e.Key = strings.Repeat(fmt.Sprint(i, "-"), 1<<18) })
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			dir := t.TempDir() + "/data"
			p := newWire(t, 1000).bind("")
			rec := p.record(dir)
			begun, before := time.Now(), stats(t, dir)
			bytesSent := 0
			for i := range f.n {
				message := f.next(p, i)
				for _, b := range message {
					bytesSent += len(b)
				}
				for deadline := time.Now().Add(patience); !p.try(message); runtime.Gosched() {
					if time.Now().After(deadline) {
						t.Fatalf("message %d is not taken", i)
					}
				}
			}
			sent := time.Since(begun)
			p.seq += 10
			last := p.batch(1, func(e *event.Fields, n int) { e.Key = "behind the flood" })
			second := p.batch(1, func(e *event.Fields, n int) { e.Key = "behind the flood" })
			p.push2(last)
			p.push2(second)
			st := before
			for deadline := time.Now().Add(patience * time.Duration(size)); st.Messages != uint64(f.n+2) || st.Index.Lag != 0; st = stats(t, dir) {
				if time.Now().After(deadline) {
					t.Fatalf("not indexed in time: %d messages, the index is %d behind, at most %d MiB resident", st.Messages, st.Index.Lag, resident(t, rec.cmd.Process.Pid))
				}
			}
			if want := map[bool]uint64{true: uint64(f.n)}[f.damaged]; st.Damaged != want {
				t.Errorf("%d of %d messages are damaged, want %d", st.Damaged, st.Messages, want)
			}
			answer := kvjournal(t, "lookup", "--dir", dir, "--tenant", "default", "behind the flood", "--output", "json").answered(t)
			if len(answer) != 1 || !strings.Contains(answer[0], `"present":true,"certainty":"confirmed"`) {
				t.Errorf("behind the flood: %q", answer)
			}
			for _, args := range [][]string{{"gaps"}, {"activity"}, {"lifetimes"}, {"objects", "--count"}, {"history", "behind the flood"}, {"why", "behind the flood"}} {
				if r := kvjournal(t, append(args, "--dir", dir)...); r.code != 0 {
					t.Errorf("%q: exit %d, %.300q", args, r.code, r.stderr)
				}
			}
			most := resident(t, rec.cmd.Process.Pid)
			t.Logf("%d messages, %d MiB, in %v; at most %d MiB resident, journal %d KiB, index %d KiB", f.n, bytesSent>>20, sent.Round(time.Millisecond), most, (st.Journal.Bytes+st.Journal.WALBytes)>>10, st.Index.Bytes>>10)
			if most > mostResident {
				t.Errorf("at most %d MiB resident, want at most %d", most, mostResident)
			}
			rec.stop(t)
			st = stats(t, dir) // live, the number of objects may be some time old
			kvjournal(t, "rebuild", "--dir", dir).answered(t)
			after := stats(t, dir)
			if after.ObjectsLive != st.ObjectsLive || after.Damaged != st.Damaged {
				t.Errorf("after a rebuild %d objects and %d damaged, before %d and %d", after.ObjectsLive, after.Damaged, st.ObjectsLive, st.Damaged)
			}
		})
	}
}

// batch is the publisher's next message, with events that change differs from a usual `stored`.
func (w *wire) batch(events int, change func(e *event.Fields, n int)) [][]byte {
	w.seq++
	now := time.Now().UnixMilli()
	fields := make([]event.Fields, events)
	for n := range fields {
		w.id++
		fields[n] = stored(fmt.Sprint("k", n), "cpu")
		fields[n].ID, fields[n].Timestamp = w.id, now
		change(&fields[n], n)
	}
	return [][]byte{{}, w.number(), w.encoder.AppendPayload(nil, now, fields, 0)}
}

// push2 sends one message however long the mark refuses it.
func (w *wire) push2(message [][]byte) {
	w.t.Helper()
	eventually(w.t, "the mark lets a message through", func() bool { return w.try(message) })
}

// garbage is a message that cannot be applied, each time another.
func garbage(rng *rand.Rand, p *wire, i int) [][]byte {
	p.seq++
	payload := make([]byte, rng.IntN(200))
	for i := range payload {
		payload[i] = byte(rng.Uint32())
	}
	unlike := binary.BigEndian.AppendUint64(nil, uint64(i)) // so that none is a duplicate of the one before
	switch i % 8 {
	case 0:
		return [][]byte{{}, {}, {}}[:1+i/8%3]
	case 1:
		return append(make([][]byte, 50+rng.IntN(300)), unlike)
	case 2:
		return [][]byte{{}, p.number(), bytes.Repeat([]byte{0x91}, 1000+i%50)} // nested too deep
	case 3:
		return [][]byte{{}, p.number(), append([]byte{0x92, 1, 0xdd, 0xff, 0xff, 0xff, 0xff}, unlike...)} // 4 billion events
	case 4:
		return [][]byte{{}, p.number(), append([]byte{0x92, 1, 0x91, 0xdf, 0, 0, 0, 3}, unlike...)}
	case 5:
		return [][]byte{{}, p.number()[:rng.IntN(8)], unlike}
	case 6:
		return [][]byte{unlike, p.number(), append(append([]byte{0xc1}, payload...), unlike...)}
	}
	return [][]byte{{}, p.number(), append(append([]byte{0x92, 1, 0x90}, unlike...), payload...)} // something follows
}

// bomb is a payload of nearly 64 MiB.
func bomb(i int) []byte {
	const size = 63 << 20
	b := append(make([]byte, 0, size+64), 0x92, 1)
	switch i % 4 {
	case 0: // three million clears
		one := append(append([]byte{0x81, 0xaa}, "event_type\xa7"...), "cleared"...)
		b = binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(size/len(one)))
		return append(b, bytes.Repeat(one, size/len(one))...)
	case 1: // one key, and then an end that is missing
		b = append(b, 0x91, 0x81)
		return append(binary.BigEndian.AppendUint32(append(b, 0xdb), size), bytes.Repeat([]byte{'k'}, size)...)
	case 2: // nothing but arrays in arrays
		return append(b, bytes.Repeat([]byte{0x91}, size)...)
	}
	// a map of millions of fields, of which none counts
	b = append(append(b, 0x91, 0xdf), 0, 0x80, 0, 0)
	return append(b, bytes.Repeat([]byte{0xa1, 'x', 0xc0}, 8<<20)...)
}

var residentMost = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// resident is the most memory that a process ever had, in MiB.
func resident(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := residentMost.FindSubmatch(b)
	if m == nil {
		t.Skip("this system does not tell")
	}
	kib, _ := strconv.Atoi(string(m[1]))
	return kib >> 10
}
