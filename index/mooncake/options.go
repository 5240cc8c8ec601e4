package mooncake

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options of a Client. Zero values mean the defaults.
type Options struct {
	// URL of the master's admin server: http://HOST:9003 or https://HOST, with a path in front of the API's where a proxy
	// wants one. Required. A user name, a query or a fragment in it is refused: they would be printed.
	URL string

	// Token is sent as "Authorization: Bearer TOKEN". Empty: none, masters themselves ask for none. Over http
	// anybody on the way can read it.
	Token string

	// CA holds the PEM certificates that may sign the server's; they replace the system's. Empty: the system's.
	CA []byte

	// TLS is the configuration of https connections, for client certificates and the like. It is copied. Nil: Go's defaults.
	TLS *tls.Config

	// Timeouts of the calls.
	Timeouts Timeouts

	// PauseFactor times what a call took is the pause behind it. Default 1: the master works for this client at most half
	// of the time. More is gentler and makes a reconciliation longer; negative: no pause.
	PauseFactor float64

	// BatchKeys is how many keys one BatchQuery call asks for at most. Default 1,000, about 280 KB of reply.
	// More keys hold the master's thread and the client's budget longer per call.
	BatchKeys int

	// BatchBytes bounds the escaped keys of one call, in bytes. Default 256 KiB; a longer key goes alone. Masters took request
	// lines of 32 MB, but proxies do not.
	BatchBytes int

	// IsolationCalls is how many more calls a BatchQuery may make for each batch that the master refuses, to find the key
	// that it refuses. Default 64, enough for three bad keys among 1,000. When they are spent the rest is Skipped.
	IsolationCalls int

	// MaxListing bounds the body of a listing, in bytes. Default 16 GiB. It is streamed, so this only ends an endless reply.
	MaxListing int64

	// MaxKey bounds one key of a listing, in bytes; one key is what a listing holds in memory. Default 64 MiB, the
	// largest message that the recorder receives.
	MaxKey int

	// MaxReply bounds the other replies, in bytes. Default 64 MiB. (100,000 keys in one call gave 28 MB.)
	MaxReply int64

	// OnSend, if not nil, is called right before a request is sent: after all waiting, with the time that the call's Timing
	// tells. Calls do not overlap. It must not call the Client.
	OnSend func(Kind, time.Time)

	// OnCall, if not nil, is called after each request, like OnSend.
	OnCall func(Call)

	// Clock is the time used for pacing and in Timing; timeouts run on the real one. Nil: the real one.
	Clock Clock

	// Random gives numbers in [0, 1) for the jitter of the backoff. Nil: math/rand.
	Random func() float64
}

// Timeouts of the calls, from sending to the last byte; time that the callback of Keys takes counts. Zero means the default.
type Timeouts struct {
	Connect  time.Duration // until the connection stands, inside the others. Default 5 s.
	Status   time.Duration // Default 5 s. It takes less than 1 ms on an idle master.
	Health   time.Duration // Default 5 s.
	Keys     time.Duration // Default 5 min. 100,000 keys took 0.4 s at 14,000 puts/s.
	Batch    time.Duration // Default 30 s, for one call of at most BatchKeys keys. 100,000 keys took 0.5 s.
	Segments time.Duration // Default 15 s.
	// Silence is how long a listing may not go on, its first byte included. Default 1 min. A master makes a listing before it sends it, so
	// less would give up one of very many keys.
	Silence time.Duration
}

// Call tells of one request, for metrics.
type Call struct {
	Kind   Kind
	Sent   time.Time
	Waited time.Duration // for the other calls, the pause and the backoff
	Took   time.Duration // from sending to the last byte
	Bytes  int64         // of the reply's body that were read
	Keys   int           // asked for in a BatchQuery call
	Err    error         // nil: it was answered
}

// maxToken bounds a token, in bytes.
const maxToken = 8 << 10

func (o Options) withDefaults() Options {
	durations := []struct {
		d *time.Duration
		v time.Duration
	}{
		{&o.Timeouts.Connect, 5 * time.Second}, {&o.Timeouts.Status, 5 * time.Second}, {&o.Timeouts.Health, 5 * time.Second},
		{&o.Timeouts.Keys, 5 * time.Minute}, {&o.Timeouts.Silence, time.Minute}, {&o.Timeouts.Batch, 30 * time.Second}, {&o.Timeouts.Segments, 15 * time.Second},
	}
	for _, d := range durations {
		if *d.d == 0 {
			*d.d = d.v
		}
	}
	switch {
	case o.PauseFactor == 0:
		o.PauseFactor = 1
	case o.PauseFactor < 0:
		o.PauseFactor = 0
	}
	defaultTo(&o.BatchKeys, 1000)
	defaultTo(&o.BatchBytes, 256<<10)
	defaultTo(&o.IsolationCalls, 64)
	defaultTo(&o.MaxListing, 16<<30)
	defaultTo(&o.MaxKey, 64<<20)
	defaultTo(&o.MaxReply, 64<<20)
	if o.Clock == nil {
		o.Clock = realClock{}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

func defaultTo[T int | int64](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// check says what is wrong with options that have their defaults.
func (o *Options) check() error {
	for _, d := range []time.Duration{o.Timeouts.Connect, o.Timeouts.Status, o.Timeouts.Health, o.Timeouts.Keys, o.Timeouts.Silence, o.Timeouts.Batch, o.Timeouts.Segments} {
		if d < 0 {
			return fmt.Errorf("timeout %v is negative", d)
		}
	}
	if o.BatchKeys < 0 || o.BatchBytes < 0 || o.IsolationCalls < 0 || o.MaxListing < 0 || o.MaxKey < 0 || o.MaxReply < 0 {
		return errors.New("a limit is negative")
	}
	if len(o.Token) > maxToken {
		return fmt.Errorf("the token has %d bytes, at most %d", len(o.Token), maxToken)
	}
	for _, b := range []byte(o.Token) {
		if b <= ' ' || b > '~' || b == '"' || b == '\\' {
			return errors.New("the token contains a space, a line end, a quote or another byte that no token has")
		}
	}
	return nil
}

func (t *Timeouts) of(k Kind) time.Duration {
	return [...]time.Duration{KindStatus: t.Status, KindHealth: t.Health, KindKeys: t.Keys, KindBatch: t.Batch, KindSegments: t.Segments}[k]
}

// CheckURL says what is wrong with the URL of a master's admin server. It never repeats a password.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (*url.URL, error) {
	if strings.Contains(text, "@") {
		return nil, errors.New("master URL: a user name or password does not belong there; masters ask for none, a proxy's token is an option of its own")
	}
	fail := func(what string) (*url.URL, error) {
		return nil, fmt.Errorf("master URL %q: %s; want http://HOST:9003 or https://HOST", text, what)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fail("it cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return fail("it does not begin with http:// or https://")
	case u.Hostname() == "":
		return fail("no host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("master URL: it has a query or a fragment, want http://HOST:9003 or https://HOST")
	}
	if u.Path == "" {
		u.Path = "/" // JoinPath keeps a missing slash missing
	}
	return u, nil
}

// newTransport makes HTTP/1.1 connections, one at a time, straight to the host.
func newTransport(o *Options) (*http.Transport, error) {
	config := o.TLS.Clone()
	if len(o.CA) > 0 {
		if config == nil {
			config = &tls.Config{}
		}
		if config.RootCAs != nil {
			return nil, errors.New("CA and TLS.RootCAs are both set")
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.CA) {
			return nil, errors.New("CA holds no PEM certificate")
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a master speaks nothing else, and HTTP/2 tells less about a cut reply
	dialer := net.Dialer{Timeout: o.Timeouts.Connect}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    o.Timeouts.Connect,
		DisableCompression:     true,
		MaxConnsPerHost:        1,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		Protocols:              protocols,
	}, nil
}
