package subscribe

import (
	"strings"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"
)

func TestCheckEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"tcp://127.0.0.1:5557":               "",
		"tcp://master-0.mooncake:5557":       "",
		"tcp://master_0:1":                   "",
		"tcp://[::1]:65535":                  "",
		"tcp://[fe80::1%eth0]:5557":          "",
		"tcp://10.0.0.1:0;10.0.0.2:5557":     "",
		"ipc:///run/mooncake.sock":           "",
		"":                                   "want tcp://HOST:PORT",
		"master:5557":                        "want tcp://HOST:PORT",
		"tcp://":                             "missing port",
		"tcp://master":                       "missing port",
		"tcp://:5557":                        "no host",
		"tcp://*:5557":                       "want a host, not *",
		"tcp://master:*":                     `port "*" is no number`,
		"tcp://master:0":                     `port "0" is no number`,
		"tcp://master:65536":                 `port "65536" is no number`,
		"tcp://master:5557/":                 `port "5557/" is no number`,
		"tcp://mas ter:5557":                 "only letters",
		"tcp://::1:5557":                     "too many colons",
		"tcp://10.0.0.1;10.0.0.2:5557":       "local address: missing port",
		"ipc://":                             "no path",
		"ipc:///" + strings.Repeat("x", 107): "the path has 108 bytes, at most 107",
		"inproc://x":                         "reports no connection events",
		"http://master:9003":                 `unknown transport "http"`,
		"udp://master:5557":                  "unknown transport",
	} {
		err := CheckEndpoint(endpoint)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", endpoint, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q in it", endpoint, err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	zctx, err := zmq.NewContext()
	if err != nil {
		t.Fatal(err)
	}
	defer zctx.Term() // hangs if a refused Subscriber left a socket
	for want, o := range map[string]Options{
		"endpoint":                {Endpoint: "tcp://*:1"},
		"reconnect interval 1ns":  {Endpoint: "tcp://a:1", ReconnectInterval: 1},
		"reconnect interval -1ns": {Endpoint: "tcp://a:1", ReconnectInterval: -1},
		"keepalive interval 1":    {Endpoint: "tcp://a:1", KeepaliveInterval: time.Millisecond},
		"high-water mark -1":      {Endpoint: "tcp://a:1", ReceiveHWM: -1},
		"largest backoff 1ns":     {Endpoint: "tcp://a:1", BackoffMax: 1},
	} {
		if _, err := New(zctx, NewBuffer(1), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", o, err, want)
		}
	}
}
