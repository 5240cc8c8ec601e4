package subscribe

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// Options of a Subscriber. Zero values mean the defaults.
type Options struct {
	// Source is copied into every Item. Several subscribers may have the same.
	Source int

	// Endpoint of the publisher: tcp://HOST:PORT, tcp://[IPv6]:PORT, tcp://LOCAL:PORT;HOST:PORT or ipc://PATH.
	// inproc is refused: it reports no connection events.
	Endpoint string

	// Logger hears of connections and what is wrong with them. Default: slog.Default().
	Logger *slog.Logger

	// ReceiveHWM is how many messages libzmq may queue for the loop. Default 256: 7 MB of full messages, and a quarter of a GB where each
	// has 1 MB. 1,000 made BenchmarkSubscriber no faster.
	// More costs memory and lengthens the unproven window of a reconnect; less costs nothing while the loop never waits.
	ReceiveHWM int

	// ReconnectInterval is the time until the first attempt to reconnect. Default 20 ms (libzmq adds up to as much again,
	// at random). What a new publisher sends before it is reached is lost, so more costs events at every restart.
	ReconnectInterval time.Duration

	// ReconnectIntervalMax bounds the interval between attempts that reach nobody; it doubles up to here. Default
	// 100 ms: an attempt costs a few packets (and a name lookup), and the interval is what a restarted publisher loses at most.
	ReconnectIntervalMax time.Duration

	// BackoffMax bounds the interval between connections that come up and break without ever giving a message: a
	// wrong peer, or one whose messages are too large. It starts at ReconnectInterval and doubles. Default 2 s.
	BackoffMax time.Duration

	// ConnectTimeout ends an attempt that is not answered at all. Default 5 s.
	ConnectTimeout time.Duration

	// HandshakeTimeout ends a connection whose peer does not speak ZMTP. Default 10 s.
	HandshakeTimeout time.Duration

	// KeepaliveInterval is how long nothing may come until the publisher's host is asked whether it is there, and the time between two such
	// questions, in whole seconds. Default 5 s; negative: it is not asked, and a host that vanishes stays "connected" for ever. It is
	// TCP's keepalive, not ZMQ's heartbeat (doc.go, "Heartbeats").
	KeepaliveInterval time.Duration

	// KeepaliveTimeout breaks the connection if nothing at all came for so long after the first question. Default 15 s. Less notices a
	// vanished host sooner.
	KeepaliveTimeout time.Duration

	// MaxMessageSize is the largest frame accepted, in bytes. A larger one breaks the connection. Default 64 MiB;
	// negative: no limit. The frames of a message together may have 64 KiB more.
	MaxMessageSize int64
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.ReconnectInterval, 20*time.Millisecond)
	def(&o.ReconnectIntervalMax, 100*time.Millisecond)
	def(&o.BackoffMax, 2*time.Second)
	def(&o.ConnectTimeout, 5*time.Second)
	def(&o.HandshakeTimeout, 10*time.Second)
	def(&o.KeepaliveInterval, 5*time.Second)
	def(&o.KeepaliveTimeout, 15*time.Second)
	if o.ReceiveHWM == 0 {
		o.ReceiveHWM = 256
	}
	if o.MaxMessageSize == 0 {
		o.MaxMessageSize = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func (o *Options) check() error {
	if err := CheckEndpoint(o.Endpoint); err != nil {
		return err
	}
	if o.ReceiveHWM < 0 {
		return fmt.Errorf("receive high-water mark %d is negative", o.ReceiveHWM)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		// Below 1 ms libzmq would read 0, and 0 switches reconnecting off: the process could abort (see doc.go).
		{"reconnect interval", o.ReconnectInterval}, {"largest reconnect interval", o.ReconnectIntervalMax}, {"largest backoff", o.BackoffMax},
		{"connect timeout", o.ConnectTimeout}, {"handshake timeout", o.HandshakeTimeout}, {"keepalive timeout", o.KeepaliveTimeout},
	} {
		if d.value < time.Millisecond {
			return fmt.Errorf("%s %v is below 1 ms", d.name, d.value)
		}
	}
	if o.KeepaliveInterval > 0 && o.KeepaliveInterval < time.Second {
		return fmt.Errorf("keepalive interval %v is below 1 s", o.KeepaliveInterval)
	}
	return nil
}

// CheckEndpoint says what is wrong with an endpoint, in more words than libzmq's "invalid argument". Names are not looked up.
func CheckEndpoint(endpoint string) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("endpoint %q: %w", endpoint, fmt.Errorf(format, args...))
	}
	scheme, address, found := strings.Cut(endpoint, "://")
	if !found {
		return fail("want tcp://HOST:PORT or ipc://PATH")
	}
	switch scheme {
	case "tcp":
		peer := address
		if local, remote, found := strings.Cut(address, ";"); found {
			if _, _, err := net.SplitHostPort(local); err != nil {
				return fail("local address: %w", shorten(err))
			}
			peer = remote
		}
		host, port, err := net.SplitHostPort(peer)
		switch n, perr := strconv.ParseUint(port, 10, 16); {
		case err != nil:
			return fail("%w", shorten(err))
		case host == "":
			return fail("no host")
		case host == "*":
			return fail("a subscriber connects: want a host, not *")
		case strings.ContainsFunc(host, func(r rune) bool { return !strings.ContainsRune(hostRunes, r) }):
			return fail("a host name has only letters, digits, and . - _ (IPv6: : %% in brackets)")
		case perr != nil || n == 0:
			return fail("port %q is no number from 1 to 65535", port)
		}
	case "ipc":
		if address == "" || address == "*" {
			return fail("no path")
		}
		if len(address) > maxIPCPath {
			return fail("the path has %d bytes, at most %d", len(address), maxIPCPath)
		}
	case "inproc":
		return fail("inproc reports no connection events")
	default:
		return fail("unknown transport %q: want tcp or ipc", scheme)
	}
	return nil
}

const (
	maxIPCPath = 107 // sun_path has 108 bytes, one is the terminator
	hostRunes  = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%"
)

// shorten leaves the address out of a net.AddrError: the endpoint is in the message already.
func shorten(err error) error {
	var addr *net.AddrError
	if errors.As(err, &addr) {
		return errors.New(addr.Err)
	}
	return err
}

// ipv6 says whether the endpoint names an IPv6 address. Only then is libzmq's IPv6 switched on: with it, libzmq takes the
// first address of a name, and a publisher on IPv4 alone would not be found.
func (o *Options) ipv6() bool {
	return strings.HasPrefix(o.Endpoint, "tcp://") && strings.Contains(o.Endpoint, "[")
}
