package subscribe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

const anyPort = "tcp://127.0.0.1:0"

func TestMessagesInOrder(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.PUB, anyPort, 1)
	r := run(t, zctx, 256<<20, Options{Source: 7, Endpoint: p.endpoint})
	r.collect(0)
	r.until(p, 10)
	for _, size := range []int{0, 1, 500, 500, 500, 28 << 10, 500} {
		p.send(500, size)
		r.caughtUp(p)
	}
	p.send(10, 1<<20)
	r.caughtUp(p)
	items := r.got()
	check(t, items)
	if s := story(t, items); strings.Count(s, "C") != 1 || !strings.HasPrefix(s, "C 1*") || strings.Contains(s, "D") {
		t.Fatal(s)
	}
	_, first := parse(t, items[1].Frames)
	if uint64(len(items)-1) != p.seq-first+1 {
		t.Fatalf("%d messages of %d since the first", len(items)-1, p.seq-first+1)
	}
	for _, it := range items {
		if it.Source != 7 || it.Slow || it.Backlog {
			t.Fatal(it.Source, it.Slow, it.Backlog)
		}
	}
	st := r.sub.Status()
	if !st.Connected || st.WindowOpen || st.Messages != uint64(len(items)-1) || st.Disconnects != 0 || st.LastError != "" || st.Stalls != 0 || st.Source != 7 {
		t.Errorf("%+v", st)
	}
}

// Frames come as they were sent: none, one or many, empty or not.
func TestAnyFrames(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.PUB, anyPort, 1)
	r := run(t, zctx, 1<<20, Options{Endpoint: p.endpoint})
	r.collect(0)
	r.until(p, 10)
	r.caughtUp(p)
	n := len(r.got())
	sent := [][]any{{""}, {"one"}, {"", ""}, {"topic", "12345678", "", "\x00\xff", ""}, {strings.Repeat("x", 1000)}}
	many := make([]any, 300)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	sent = append(sent, many)
	for _, m := range sent {
		if _, err := p.sock.SendMessage(m...); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "all", func() bool { return len(r.got()) == n+len(sent) })
	for i, it := range r.got()[n:] {
		if len(it.Frames) != len(sent[i]) {
			t.Fatalf("message %d: %d frames, want %d", i, len(it.Frames), len(sent[i]))
		}
		for j, f := range it.Frames {
			if string(f) != sent[i][j] {
				t.Fatalf("message %d, frame %d: %q", i, j, f)
			}
		}
	}
}

func TestPublisherRestarts(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.PUB, mooncaketest.Reserved(t), 1)
	r := run(t, zctx, 64<<20, Options{Endpoint: p.endpoint})
	r.collect(0)
	r.until(p, 100)
	for life := uint64(2); life < 12; life++ {
		p.send(3000, 100)
		p.close()
		p = newPublisher(t, zctx, zmq.PUB, p.endpoint, life)
		r.until(p, 100)
	}
	r.caughtUp(p)
	testkit.Eventually(t, "the window closes", func() bool { return !r.sub.Status().WindowOpen })
	p.send(1, 100)
	r.caughtUp(p)
	items := r.got()
	check(t, items)
	s := story(t, items)
	if strings.Count(s, "C") != 11 || strings.Count(s, "D") != 10 {
		t.Fatalf("%d connected, %d disconnected, want 11 and 10: %s", strings.Count(s, "C"), strings.Count(s, "D"), s)
	}
	if st := r.sub.Status(); st.Disconnects != 10 || !st.Connected || st.LastError != "connection lost" || st.LastErrorTime.IsZero() {
		t.Errorf("%+v", st)
	}
}

// A connection that is cut in the middle of messages, again and again, while they flow.
func TestConnectionCut(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.PUB, anyPort, 1)
	link := newProxy(t, p.endpoint)
	r := run(t, zctx, 64<<20, Options{Endpoint: link.endpoint})
	r.collect(0)
	r.until(p, 100)
	for i := range 20 {
		before := r.sub.Status().Disconnects
		for range 10 {
			p.send(20, 28<<10)
		}
		link.cut()
		p.send(200, 1000)
		testkit.Eventually(t, fmt.Sprint("cut ", i, " is noticed"), func() bool { p.send(10, 1000); return r.sub.Status().Disconnects > before })
		testkit.Eventually(t, "the connection is back", func() bool { p.send(1, 100); return !r.sub.Status().WindowOpen })
	}
	r.until(p, 100)
	r.caughtUp(p)
	items := r.got()
	check(t, items)
	if s := story(t, items); strings.Count(s, "C") != strings.Count(s, "D")+1 || strings.Count(s, "D") < 20 {
		t.Fatal(s)
	}
}

// A writer that stalls: nothing below the marks is lost, and the item behind the stall says so.
func TestStalledWriter(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.XPUB, anyPort, 1)
	const max = 20000
	r := run(t, zctx, max, Options{Endpoint: p.endpoint})
	if _, err := p.sock.RecvBytes(0); err != nil { // the subscription
		t.Fatal(err)
	}
	p.send(500, 1000)
	testkit.Eventually(t, "the buffer is full", func() bool { return r.sub.Status().Stalled })
	if n := r.buf.Bytes(); n > max {
		t.Errorf("%d bytes in a buffer of %d", n, max)
	}
	full := r.buf.Len()
	r.collect(0)
	r.caughtUp(p)
	items := r.got()
	check(t, items)
	if s := story(t, items); s != "C 1*500" {
		t.Fatal(s)
	}
	// The item that waited stands right behind those that filled the buffer; the next one is the first after the stall.
	for i, it := range items[:full+2] {
		if it.Slow != (i == full+1) || it.Backlog != (i == full+1) {
			t.Errorf("item %d of %d that filled the buffer: slow %v, backlog %v", i, full, it.Slow, it.Backlog)
		}
	}
	if !items[len(items)-1].Backlog {
		t.Error("the backlog ends before the socket was quiet")
	}
	testkit.Eventually(t, "the socket is quiet: no backlog any more", func() bool {
		p.send(1, 10)
		r.caughtUp(p)
		time.Sleep(idleWait)
		items := r.got()
		return !items[len(items)-1].Backlog
	})
	if st := r.sub.Status(); st.Stalls == 0 || st.StallTime == 0 || st.Stalled {
		t.Errorf("%+v", st)
	}
}

// The connection breaks and comes back while the buffer is full: the events are kept in order behind what waited.
func TestConnectionLostWhileStalled(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.XPUB, mooncaketest.Reserved(t), 1)
	r := run(t, zctx, 20000, Options{Endpoint: p.endpoint})
	if _, err := p.sock.RecvBytes(0); err != nil {
		t.Fatal(err)
	}
	p.send(100, 1000) // all of it fewer than libzmq holds: behind more, it sees a loss only when there is room again
	testkit.Eventually(t, "the buffer is full", func() bool { return r.sub.Status().Stalled })
	for life := uint64(2); life < 5; life++ {
		p.close()
		testkit.Eventually(t, "the loss is seen", func() bool { return r.sub.Status().Disconnects == life-1 })
		p = newPublisher(t, zctx, zmq.XPUB, p.endpoint, life)
		if _, err := p.sock.RecvBytes(0); err != nil {
			t.Fatal(err)
		}
		p.send(40, 100)
		testkit.Eventually(t, "connected again", func() bool { return r.sub.Status().Connected })
	}
	r.collect(0)
	r.caughtUp(p)
	testkit.Eventually(t, "the window closes", func() bool { return !r.sub.Status().WindowOpen })
	p.send(10, 100)
	r.caughtUp(p)
	items := r.got()
	check(t, items)
	if s := story(t, items); strings.Count(s, "D") != 1 || strings.Count(s, "C") != 2 || !strings.HasSuffix(s, "C 4*10") && !strings.Contains(s, "C 4*") {
		t.Fatal(s)
	}
}

// The context ends Run at once, also while the buffer is full and no one pops; what was received is in the buffer.
func TestContextEndsRun(t *testing.T) {
	for _, stalled := range []bool{false, true} {
		zctx := newContext(t)
		p := newPublisher(t, zctx, zmq.XPUB, anyPort, 1)
		max := int64(1 << 20)
		if stalled {
			max = 10000
		}
		r := run(t, zctx, max, Options{Endpoint: p.endpoint})
		if _, err := p.sock.RecvBytes(0); err != nil {
			t.Fatal(err)
		}
		p.send(100, 1000)
		if stalled {
			testkit.Eventually(t, "the buffer is full", func() bool { return r.sub.Status().Stalled })
		} else {
			testkit.Eventually(t, "all received", func() bool { return r.sub.Status().Messages == 100 })
		}
		r.cancel()
		// At once: within 2 s of this process, counted by looks, which a busy machine holds up as well.
		look, err := time.NewTicker(10*time.Millisecond), error(nil)
		for looks, ended := 0, false; !ended; looks++ {
			select {
			case err = <-r.ended:
				ended = true
			case <-look.C:
			}
			if looks > 200 {
				t.Fatal("Run takes long to end")
			}
		}
		look.Stop()
		r.ended <- err
		if err != nil {
			t.Fatal(err)
		}
		st := r.sub.Status()
		messages := uint64(0)
		for {
			items, err := r.buf.Pop(context.Background(), 1<<20)
			if err != nil {
				break
			}
			for _, it := range items {
				if it.Kind == capture.Message {
					messages++
				}
			}
		}
		if messages != st.Messages || st.Connected || st.Stalled {
			t.Errorf("%d messages came out, status %+v", messages, st)
		}
		if err := r.sub.Run(context.Background()); err == nil {
			t.Error("Run runs twice")
		}
	}
}

func TestClosedBufferEndsRun(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.XPUB, anyPort, 1)
	r := run(t, zctx, 10000, Options{Endpoint: p.endpoint})
	if _, err := p.sock.RecvBytes(0); err != nil {
		t.Fatal(err)
	}
	p.send(100, 1000)
	testkit.Eventually(t, "the buffer is full", func() bool { return r.sub.Status().Stalled })
	r.buf.Close()
	err := <-r.ended
	r.ended <- err
	if err != ErrBufferClosed {
		t.Fatal(err)
	}
}

// The publisher's process is killed at full speed in front of a slow reader, again and again. With other socket options
// libzmq aborts the process here (ZMQ.md).
func TestPublisherKilled(t *testing.T) {
	kills := 12
	if testing.Short() {
		kills = 3
	}
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	zctx := newContext(t)
	p := startPublisher(t, mooncaketest.Reserved(t), 1, 0, 2000, 0, false)
	r := run(t, zctx, 2<<20, Options{Endpoint: p.endpoint})
	r.collect(10 * time.Millisecond)
	for life := uint64(1); life <= uint64(kills); life++ {
		testkit.Eventually(t, "the connection of the life", func() bool {
			st := r.sub.Status()
			return st.Connected && st.Disconnects == life-1
		})
		came := r.sub.Status().Messages
		more := 500 + rng.Uint64N(3000)
		testkit.Eventually(t, "messages", func() bool { return r.sub.Status().Messages > came+more })
		p.kill()
		p = startPublisher(t, p.endpoint, life+1, 0, 2000, 0, false)
	}
	testkit.Eventually(t, "messages of the last life", func() bool {
		items := r.got()
		last := items[len(items)-1]
		if last.Kind != capture.Message {
			return false
		}
		life, _ := parse(t, last.Frames)
		return life == uint64(kills)+1
	})
	r.cancel()
	items := r.got()
	check(t, items)
	t.Logf("%d items: %s", len(items), story(t, items))
}

// A frame above the maximum ends the connection for libzmq, for good. All that came before it is received, the loss
// is told, and a new socket goes on.
func TestOversizeMessage(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.XPUB, anyPort, 1)
	r := run(t, zctx, 20000, Options{Endpoint: p.endpoint, MaxMessageSize: 2000})
	subscribed := func() {
		for {
			if m, err := p.sock.RecvBytes(0); err != nil {
				t.Fatal(err)
			} else if m[0] == 1 {
				return
			}
		}
	}
	subscribed()
	p.send(500, 1000) // more than the buffer: unread when the connection ends
	p.send(1, 2001)
	p.send(10, 1000)
	r.collect(0)
	subscribed() // the new socket
	p.send(10, 1000)
	r.caughtUp(p)
	items := r.got()
	check(t, items)
	s := story(t, items)
	if strings.Count(s, "D") != 1 { // anywhere among the first 500: it overtakes them
		t.Fatal(s)
	}
	var seqs []uint64
	for _, it := range items {
		if it.Kind == capture.Message {
			_, seq := parse(t, it.Frames)
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) != 510 || seqs[499] != 500 || seqs[500] != 512 {
		t.Fatalf("%d messages: %s", len(seqs), s)
	}
	testkit.Eventually(t, "the window closes", func() bool { return !r.sub.Status().WindowOpen })
	st := r.sub.Status()
	if st.Disconnects != 1 || st.Replaced != 1 || !strings.Contains(st.LastError, "larger than the largest message size of 2000 bytes") {
		t.Errorf("%+v", st)
	}
}

// Peers that are no publishers do no harm, are not visited too often, and are named.
func TestWrongPeers(t *testing.T) {
	t.Run("hangs up", func(t *testing.T) {
		endpoint, _ := listener(t, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", true)
		wrongPeer(t, endpoint, "handshake failed")
	})
	t.Run("silent", func(t *testing.T) {
		endpoint, _ := listener(t, "", false)
		wrongPeer(t, endpoint, "handshake failed")
	})
	t.Run("ssh", func(t *testing.T) {
		endpoint, _ := listener(t, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", false)
		wrongPeer(t, endpoint, "handshake failed")
	})
	t.Run("garbage behind a greeting", func(t *testing.T) {
		endpoint, _ := listener(t, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL"+strings.Repeat("\x00", 48)+strings.Repeat("garbage", 100), false)
		wrongPeer(t, endpoint, "protocol error: the peer is no publisher")
	})
	t.Run("other socket", func(t *testing.T) {
		zctx := newContext(t)
		p := newPublisher(t, zctx, zmq.REP, anyPort, 1)
		wrongPeer(t, p.endpoint, "protocol error: the peer is no publisher")
	})
	t.Run("nobody", func(t *testing.T) {
		wrongPeer(t, "tcp://127.0.0.1:1", "cannot connect: refused")
	})
	t.Run("no name", func(t *testing.T) {
		wrongPeer(t, "tcp://no-such-host.invalid:1", "no such name")
	})
	t.Run("no path", func(t *testing.T) {
		wrongPeer(t, "ipc:///nonexistent/socket", "cannot connect")
	})
}

func wrongPeer(t *testing.T, endpoint, says string) {
	zctx := newContext(t)
	r := run(t, zctx, 1<<20, Options{Endpoint: endpoint, HandshakeTimeout: 100 * time.Millisecond})
	r.collect(0)
	testkit.Eventually(t, "it says "+says, func() bool { return strings.Contains(r.sub.Status().LastError, says) })
	if st := r.sub.Status(); st.Connected || !st.WindowOpen || st.Messages != 0 || st.LastErrorTime.IsZero() {
		t.Errorf("%+v", st)
	}
	if items := r.got(); len(items) != 0 {
		t.Errorf("%d items", len(items))
	}
}

// A peer that accepts and closes is visited ever more seldom.
func TestBackoff(t *testing.T) {
	endpoint, visits := listener(t, "", true)
	r := run(t, newContext(t), 1<<20, Options{Endpoint: endpoint, ReconnectInterval: time.Millisecond, ReconnectIntervalMax: time.Millisecond, BackoffMax: time.Hour})
	r.collect(0)
	testkit.Eventually(t, "libzmq's reconnect is taken over", func() bool { return r.sub.Status().Replaced >= 7 })
	// libzmq alone, at 1 to 2 ms, would come some 500 times in the pauses of 16, 32, … 1,024 ms.
	if n := visits(); n > 100 {
		t.Errorf("%d visits until the seventh replacement", n)
	}
}

// Bytes of a stranger that look like ZMTP 1.0: libzmq gives them out as messages without a handshake. They are kept, and
// unproven; a publisher after that is proven as any other.
func TestStrangerWithoutHandshake(t *testing.T) {
	endpoint, _ := listener(t, "\x01\x00\x03\x00ab\x03\x00cd", false)
	link := newProxy(t, endpoint)
	zctx := newContext(t)
	r := run(t, zctx, 1<<20, Options{Endpoint: link.endpoint})
	r.collect(0)
	testkit.Eventually(t, "the bytes come as messages", func() bool { return len(r.got()) == 3 })
	items := r.got()
	if items[0].Kind != capture.Disconnected || string(items[1].Frames[0]) != "ab" || string(items[2].Frames[0]) != "cd" {
		t.Fatal(items)
	}
	if st := r.sub.Status(); st.Connected || !st.WindowOpen {
		t.Errorf("%+v", st)
	}
}

// The publisher comes later than the recorder.
func TestPublisherComesLater(t *testing.T) {
	zctx := newContext(t)
	endpoint := mooncaketest.Reserved(t)
	r := run(t, zctx, 1<<20, Options{Endpoint: endpoint})
	r.collect(0)
	testkit.Eventually(t, "it is missed", func() bool { return strings.Contains(r.sub.Status().LastError, "cannot connect") })
	p := newPublisher(t, zctx, zmq.PUB, endpoint, 1)
	r.until(p, 10)
	r.caughtUp(p)
	check(t, r.got())
	if s := story(t, r.got()); !strings.HasPrefix(s, "C 1*") || strings.Contains(s, "D") {
		t.Fatal(s)
	}
}

func TestIPC(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.PUB, "ipc://"+t.TempDir()+"/s", 1)
	r := run(t, zctx, 1<<20, Options{Endpoint: p.endpoint})
	r.collect(0)
	r.until(p, 10)
	r.caughtUp(p)
	check(t, r.got())
	if s := story(t, r.got()); !strings.HasPrefix(s, "C 1*") {
		t.Fatal(s)
	}
}

func TestContextTerminated(t *testing.T) {
	zctx, err := zmq.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, zctx, 1<<20, Options{Endpoint: "tcp://127.0.0.1:1"})
	testkit.Eventually(t, "it runs", func() bool { return r.sub.Status().LastError != "" })
	if err := zctx.Term(); err != nil { // hangs unless Run closes its sockets
		t.Fatal(err)
	}
	err = <-r.ended
	r.ended <- err
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Fatal(err)
	}
}
