package subscribe

import (
	"strings"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// A message beyond the bounds breaks the connection, is named, and what is sent over the next one is received.
func TestMessageBeyondTheBounds(t *testing.T) {
	for _, test := range []struct {
		name   string
		frames int
		size   int
		says   string
	}{
		{"frames", maxFrames + 1, 0, "a message of 65537 frames and 0 bytes"},
		{"bytes together", 3, 90_000, "a message of 3 frames and 270000 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			zctx := newContext(t)
			p := newPublisher(t, zctx, zmq.XPUB, anyPort, 1)
			r := run(t, zctx, 1<<20, Options{Endpoint: p.endpoint, MaxMessageSize: 100_000})
			r.collect(0)
			p.subscribed()
			p.send(5, 100)
			for i := range test.frames {
				flags := zmq.SNDMORE
				if i == test.frames-1 {
					flags = 0
				}
				if _, err := p.sock.SendBytes(make([]byte, test.size), flags); err != nil {
					t.Fatal(err)
				}
			}
			p.subscribed()
			p.send(5, 100)
			r.caughtUp(p)
			testkit.Eventually(t, "the window closes", func() bool { return !r.sub.Status().WindowOpen })
			testkit.Eventually(t, "all is out", func() bool { return len(r.got()) == 13 })
			items := r.got()
			check(t, items)
			if s := story(t, items); !strings.HasPrefix(s, "C 1*5 D ") || strings.Count(s, "D") != 1 {
				t.Error(s)
			}
			if st := r.sub.Status(); st.Disconnects != 1 || st.Replaced != 1 || !strings.Contains(st.LastError, test.says) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// subscribed waits until a subscription comes.
func (p *publisher) subscribed() {
	p.t.Helper()
	for {
		if m, err := p.sock.RecvBytes(0); err != nil {
			p.t.Fatal(err)
		} else if m[0] == 1 {
			return
		}
	}
}

// Of large messages libzmq may hold few, once they are known to be large.
func TestMark(t *testing.T) {
	o := Options{}.withDefaults()
	for _, test := range []struct {
		largest int64
		want    int
	}{{0, 256}, {500, 256}, {64 << 10, 256}, {1 << 20, 64}, {64 << 20, 1}, {1 << 40, 1}} {
		if got := o.mark(test.largest); got != test.want {
			t.Errorf("largest message %d bytes: %d messages, want %d", test.largest, got, test.want)
		}
	}
}

// A connection can be given up from outside, also while the loop waits for a writer; what it received before comes out.
func TestGiveUp(t *testing.T) {
	zctx := newContext(t)
	p := newPublisher(t, zctx, zmq.XPUB, anyPort, 1)
	r := run(t, zctx, 20_000, Options{Endpoint: p.endpoint})
	p.subscribed()
	p.send(100, 1000)
	testkit.Eventually(t, "it stalls", func() bool { return r.sub.Status().Stalled })
	r.sub.GiveUp(errTest)
	testkit.Eventually(t, "it takes another socket", func() bool { return r.sub.Status().Replaced == 1 })
	if st := r.sub.Status(); !strings.Contains(st.LastError, errTest.Error()) {
		t.Errorf("%+v", st)
	}
	r.collect(0)
	p.subscribed()
	p.send(5, 1000)
	r.caughtUp(p)
	testkit.Eventually(t, "the window closes", func() bool { return !r.sub.Status().WindowOpen })
	check(t, r.got())
	if s := story(t, r.got()); strings.Count(s, "D") != 1 {
		t.Error(s)
	}
}

type testError string

func (e testError) Error() string { return string(e) }

const errTest = testError("for a test")

// More peers that are no publishers: each is named.
func TestMoreWrongPeers(t *testing.T) {
	for _, kind := range []zmq.Type{zmq.ROUTER, zmq.PULL, zmq.PUSH, zmq.DEALER, zmq.SUB} {
		t.Run(kind.String(), func(t *testing.T) {
			p := newPublisher(t, newContext(t), kind, anyPort, 1)
			wrongPeer(t, p.endpoint, "protocol error: the peer is no publisher")
		})
	}
	for name, says := range map[string]string{
		"half a greeting":          "\xff\x00\x00\x00\x00",
		"a greeting and no more":   "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + strings.Repeat("\x00", 48),
		"a greeting of PLAIN":      "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00PLAIN" + strings.Repeat("\x00", 47),
		"HTTP that stays":          "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhello",
		"zeros":                    strings.Repeat("\x00", 1000),
		"a version of the future?": "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\xff\xff" + strings.Repeat("\xff", 52),
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, visits := listener(t, says, false)
			r := run(t, newContext(t), 1<<20, Options{Endpoint: endpoint, HandshakeTimeout: 50 * time.Millisecond, BackoffMax: 20 * time.Millisecond})
			r.collect(0)
			testkit.Eventually(t, "it says what is wrong", func() bool { return r.sub.Status().LastError != "" && visits() >= 3 })
			if st := r.sub.Status(); st.Connected || !st.WindowOpen {
				t.Errorf("%+v", st)
			}
			t.Log(r.sub.Status().LastError)
		})
	}
}
