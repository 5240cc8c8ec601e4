package recorder

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/subscribe"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// zmtp is a publisher of nothing but bytes: it speaks ZMTP 3.0 as far as a subscriber needs, and then whatever a test wants.
func zmtp(t *testing.T, serve func(visit int, c net.Conn)) (endpoint string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for visit := 0; ; visit++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Write(append([]byte("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL"), make([]byte, 48)...))
				io.WriteString(c, "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB")
				// A message that comes before libzmq has sent its own READY is a protocol error: wait for it, and for the subscription.
				if _, err := io.ReadFull(c, make([]byte, 64+2+25+1)); err != nil {
					return
				}
				go io.Copy(io.Discard, c)
				serve(visit, c)
			}()
		}
	}()
	return "tcp://" + l.Addr().String()
}

// sendFrame writes one frame of a message.
func sendFrame(c io.Writer, b []byte, more bool) error {
	head := []byte{2} // a long frame
	if more {
		head[0] |= 1
	}
	_, err := c.Write(append(binary.BigEndian.AppendUint64(head, uint64(len(b))), b...))
	return err
}

// TestMessageWithoutEnd: a publisher that sends frames of one message for ever fills libzmq's memory, which knows no bound for it. The
// connection is broken, the reason told, and what comes over the next one is recorded.
func TestMessageWithoutEnd(t *testing.T) {
	if subscribe.NativeBytes() == 0 {
		t.Skip("this C library does not tell what it holds")
	}
	good := newStream()
	endpoint := zmtp(t, func(visit int, c net.Conn) {
		if visit == 0 {
			for chunk := bytes.Repeat([]byte("x"), 64<<10); sendFrame(c, chunk, true) == nil; {
			}
			return
		}
		rec := good.batch("k")
		for i, f := range rec.Frames {
			if sendFrame(c, f, i < 2) != nil {
				return
			}
		}
		io.Copy(io.Discard, c)
	})
	j := openJournal(t, vfs.NewMem())
	s, err := j.EnsureSource("s", []string{endpoint}, nil)
	if err != nil {
		t.Fatal(err)
	}
	most := subscribe.NativeBytes() + 64<<20
	r, err := New(j, []journal.Source{s}, Options{NativeBytes: most, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	peak := int64(0)
	testkit.EventuallyIn(t, 2*time.Minute, "a message is recorded", func() bool {
		peak = max(peak, subscribe.NativeBytes())
		return j.Durables().Totals.Messages >= 1
	})
	st := r.Status()[0]
	// Once; where the memory comes back late, as on a busy machine, once more: never is one broken for another reason.
	if !strings.Contains(st.LastError, "connection given up") || st.Replaced == 0 || st.Disconnects != st.Replaced {
		t.Errorf("%+v", st)
	}
	t.Logf("at most %d MiB beyond the bound were held", (peak-most)>>20)
	testkit.EventuallyIn(t, 2*time.Minute, "the memory is given back", func() bool { return subscribe.NativeBytes() < most })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTooManyEvents: a message with more events than the limit is stored, marked and counted; the next one is applied.
func TestTooManyEvents(t *testing.T) {
	j := openJournal(t, vfs.NewMem())
	src := ensureSource(t, j, "s")
	feed, err := NewFeed(j, src.ID)
	if err != nil {
		t.Fatal(err)
	}
	feed.LimitEvents(3)
	s := newStream()
	g := j.NewGroup()
	for _, keys := range [][]string{{"a", "b", "c"}, {"a", "b", "c", "d"}, {"a"}} {
		rec := s.batch(keys...)
		if _, err := feed.Add(g, &rec, false); err != nil {
			t.Fatal(err)
		}
	}
	feed.Save(g)
	if err := g.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for o := uint64(1); o <= 3; o++ {
		r, err := j.Record(o)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Damage.String())
	}
	totals := j.Durables().Totals
	if want := "none too_many_events none"; strings.Join(got, " ") != want || totals.Damaged != 1 || totals.Events != 4 {
		t.Errorf("damage %v, totals %+v, want %s", got, totals, want)
	}
	b, err := j.Block(nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := b.Frames(1, nil, new([8]byte))
	if err != nil || len(frames) != 3 || len(frames[2]) < 100 {
		t.Errorf("the refused message is stored as %q (%v)", frames, err)
	}
}
