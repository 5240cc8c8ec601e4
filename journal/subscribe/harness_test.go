package subscribe

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"

	"github.com/kvjournal/kvjournal/journal/capture"
	"github.com/kvjournal/kvjournal/journal/testkit"
)

// deadline is how long a test waits for what must happen: a busy machine may hold it up.
const deadline = time.Minute

// TestMain turns the test binary into a publisher when it is told to be one.
func TestMain(m *testing.M) {
	if args := os.Getenv("SUBSCRIBE_TEST_PUBLISHER"); args != "" {
		if err := publisherProcess(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// frames is a message of a test publisher: life tells its process or socket.
func frames(life, seq uint64, size int) [][]byte {
	payload := make([]byte, max(size, 8))
	for i := range payload {
		payload[i] = byte(seq) + byte(i)
	}
	binary.BigEndian.PutUint64(payload, life)
	return [][]byte{{}, binary.BigEndian.AppendUint64(nil, seq), payload}
}

// parse is the reverse of frames; it fails unless the message is byte for byte one of ours.
func parse(t testing.TB, got [][]byte) (life, seq uint64) {
	t.Helper()
	if len(got) != 3 || len(got[1]) != 8 || len(got[2]) < 8 {
		t.Fatalf("a message that no one sent: %.200q", got)
	}
	life, seq = binary.BigEndian.Uint64(got[2]), binary.BigEndian.Uint64(got[1])
	want := frames(life, seq, len(got[2]))
	for i := range want {
		if string(want[i]) != string(got[i]) {
			t.Fatalf("life %d, seq %d: frame %d differs", life, seq, i+1)
		}
	}
	return life, seq
}

// publisherProcess binds, says where on stdout, and sends as fast as it can (or rate messages a second) until it
// is killed, or until count messages are sent and stdin ends.
func publisherProcess(args string) error {
	var endpoint string
	var life, count uint64
	var size, rate, noDrop int
	if _, err := fmt.Sscan(args, &endpoint, &life, &count, &size, &rate, &noDrop); err != nil {
		return err
	}
	zctx, err := zmq.NewContext()
	if err != nil {
		return err
	}
	pub, err := zctx.NewSocket(zmq.XPUB) // a PUB that says when a subscriber is there
	if err != nil {
		return err
	}
	pub.SetSndhwm(10000)
	pub.SetXpubNodrop(noDrop != 0)
	for started := time.Now(); ; { // the port of the life before may take a moment to become free
		if err = pub.Bind(endpoint); err == nil {
			break
		} else if time.Since(started) > deadline {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	bound, err := pub.GetLastEndpoint()
	if err != nil {
		return err
	}
	fmt.Println(bound)
	if noDrop != 0 {
		if _, err := pub.RecvBytes(0); err != nil { // the subscription
			return err
		}
	}
	message := frames(life, 0, size)
	payload := message[2]
	started := time.Now()
	for seq := uint64(1); count == 0 || seq <= count; seq++ {
		for rate > 0 && float64(seq) > time.Since(started).Seconds()*float64(rate) {
			time.Sleep(100 * time.Microsecond)
		}
		binary.BigEndian.PutUint64(message[1], seq)
		for i := 8; i < len(payload) && noDrop == 0; i++ {
			payload[i] = byte(seq) + byte(i)
		}
		for i, f := range message {
			flag := zmq.SNDMORE
			if i == len(message)-1 {
				flag = 0
			}
			if _, err := pub.SendBytes(f, flag); err != nil {
				return err
			}
		}
	}
	io.Copy(io.Discard, os.Stdin)
	return nil
}

type process struct {
	*exec.Cmd
	endpoint string
	stdin    io.Closer
}

func startPublisher(t testing.TB, endpoint string, life, count uint64, size, rate int, noDrop bool) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	drop := 0
	if noDrop {
		drop = 1
	}
	p.Env = append(os.Environ(), "SUBSCRIBE_TEST_PUBLISHER="+fmt.Sprint(endpoint, " ", life, " ", count, " ", size, " ", rate, " ", drop))
	p.Stderr = os.Stderr
	stdin, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal("publisher process: ", err)
	}
	p.endpoint = strings.TrimSpace(line)
	return p
}

// kill is a SIGKILL: no socket is closed in order.
func (p *process) kill() {
	p.Process.Kill()
	p.Wait()
}

// publisher is a PUB socket of this process. It belongs to the test's goroutine.
type publisher struct {
	t        testing.TB
	sock     *zmq.Socket
	endpoint string
	life     uint64
	seq      uint64
}

func newContext(t testing.TB) *zmq.Context {
	t.Helper()
	zctx, err := zmq.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { zctx.Term() }) // hangs if a test leaves a socket open
	return zctx
}

func newPublisher(t testing.TB, zctx *zmq.Context, kind zmq.Type, endpoint string, life uint64) *publisher {
	t.Helper()
	sock, err := zctx.NewSocket(kind)
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{t: t, sock: sock, life: life}
	t.Cleanup(p.close)
	if err := errors.Join(sock.SetLinger(0), sock.SetRcvtimeo(deadline)); err != nil {
		t.Fatal(err)
	}
	if kind == zmq.XPUB {
		// Told of each subscription: else of none that comes before libzmq has let go of the connection that it replaces.
		if err := sock.SetXpubVerbose(1); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "bind", func() bool { return sock.Bind(endpoint) == nil }) // the port may take a moment to become free
	if p.endpoint, err = sock.GetLastEndpoint(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *publisher) send(n, size int) {
	p.t.Helper()
	for range n {
		p.seq++
		if _, err := p.sock.SendMessage(frames(p.life, p.seq, size)); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *publisher) close() { p.sock.Close() }

// reader runs a Subscriber and collects what comes out of its Buffer.
type reader struct {
	t      testing.TB
	sub    *Subscriber
	buf    *Buffer
	cancel context.CancelFunc
	ended  chan error

	mu    sync.Mutex
	items []Item
}

// run starts a Subscriber; nothing is popped before collect.
func run(t testing.TB, zctx *zmq.Context, bufferBytes int64, o Options) *reader {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	r := &reader{t: t, buf: NewBuffer(bufferBytes), ended: make(chan error, 1)}
	var err error
	if r.sub, err = New(zctx, r.buf, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() {
		err := r.sub.Run(ctx)
		r.buf.Close()
		r.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-r.ended:
		case <-time.After(deadline):
			t.Error("Run does not end")
		}
	})
	return r
}

// collect pops in the background, with a pause before each pop.
func (r *reader) collect(pause time.Duration) {
	go func() {
		for {
			time.Sleep(pause)
			items, err := r.buf.Pop(context.Background(), 256<<10)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.items = append(r.items, items...)
			r.mu.Unlock()
		}
	}()
}

func (r *reader) got() []Item {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.items[:len(r.items):len(r.items)]
}

// story is the items in short: C, D, and for a run of messages its life and count: "C 1*20 D 1*3 2*5 C 2*7".
func story(t testing.TB, items []Item) string {
	var out []string
	var last uint64
	run := 0
	for _, it := range items {
		switch it.Kind {
		case capture.Connected:
			out, run = append(out, "C"), 0
		case capture.Disconnected:
			out, run = append(out, "D"), 0
		default:
			life, _ := parse(t, it.Frames)
			if run == 0 || life != last {
				out, run = append(out, ""), 0
			}
			last = life
			run++
			out[len(out)-1] = fmt.Sprintf("%d*%d", life, run)
		}
	}
	return strings.Join(out, " ")
}

// check holds the promises of the package against items: kinds alternate, messages are ours and in order, a proven span is of one
// life, and receive times do not run backwards.
func check(t testing.TB, items []Item) {
	t.Helper()
	inside, over := false, uint64(0)
	var life, seq uint64
	for i, it := range items {
		if i > 0 && it.Received < items[i-1].Received {
			t.Fatalf("item %d: received %d ns before its predecessor", i, items[i-1].Received-it.Received)
		}
		if it.Kind != capture.Message {
			if inside == (it.Kind == capture.Connected) {
				t.Fatalf("item %d: %v out of turn: %s", i, it.Kind, story(t, items))
			}
			inside, over = it.Kind == capture.Connected, 0
			continue
		}
		l, s := parse(t, it.Frames)
		if l < life || l == life && s <= seq {
			t.Fatalf("item %d: life %d seq %d behind life %d seq %d", i, l, s, life, seq)
		}
		life, seq = l, s
		if inside && over != 0 && over != l {
			t.Fatalf("item %d: lives %d and %d in one proven span: %s", i, over, l, story(t, items))
		}
		over = l
	}
}

// until publishes one message at a time until one of them has come through: a PUB drops what it sends before the
// subscription has arrived.
func (r *reader) until(p *publisher, size int) {
	r.t.Helper()
	first := p.seq + 1
	testkit.Eventually(r.t, "the subscription arrives", func() bool {
		p.send(1, size)
		life, seq := r.last()
		return life == p.life && seq >= first
	})
}

// last is the newest message received.
func (r *reader) last() (life, seq uint64) {
	items := r.got()
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind == capture.Message {
			return parse(r.t, items[i].Frames)
		}
	}
	return 0, 0
}

// caughtUp waits for the last message that p sent.
func (r *reader) caughtUp(p *publisher) {
	r.t.Helper()
	testkit.Eventually(r.t, "the last message", func() bool {
		life, seq := r.last()
		return life == p.life && seq == p.seq
	})
}

// proxy passes TCP connections on to a port of 127.0.0.1 and cuts them on demand.
type proxy struct {
	endpoint string
	to       string
	l        net.Listener
	mu       sync.Mutex
	conns    []net.Conn
}

func newProxy(t testing.TB, endpoint string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{endpoint: "tcp://" + l.Addr().String(), to: strings.TrimPrefix(endpoint, "tcp://"), l: l}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", p.to)
			if err != nil {
				in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			pipe := func(a, b net.Conn) { io.Copy(a, b); a.Close(); b.Close() }
			go pipe(in, out)
			go pipe(out, in)
		}
	}()
	return p
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetLinger(0) // a reset: what is under way is lost
		}
		c.Close()
	}
	p.conns = nil
}

// listener is a peer that is no ZeroMQ: it says something to everyone who connects.
func listener(t testing.TB, say string, hangUp bool) (endpoint string, visits func() int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, say)
			if hangUp {
				c.Close()
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	return "tcp://127.0.0.1:" + strconv.Itoa(port), func() int { mu.Lock(); defer mu.Unlock(); return len(conns) }
}
