package subscribe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	zmq "github.com/pebbe/zmq4"
)

// A script: a number lets so many ms pass; letters are events (d dialing, r retry announced, c connected, h handshake, f handshake
// failed, L lost), m a message, N a new socket; ? asks for the verdict.
func TestPeer(t *testing.T) {
	for _, c := range []struct {
		name, script, verdicts, trouble string
	}{
		{"fresh", "?", "no", ""},
		{"works", "d c h m 5 m ?", "no", ""},
		{"lost, libzmq retries", "d c h m L r ? 1000 ?", "no no", "connection lost"},
		{"lost, no word from libzmq yet", "d c h m L ? 60 ? r 1000 ?", "no/100ms no/40ms no", "connection lost"},
		{"lost for good", "d c h m L 100 ?", "replace/0s", "protocol error: a frame larger than the largest message size of 1000 bytes, or"},
		{"refused", "d r d r ?", "no", "cannot connect: refused"},
		{"no name", "r ?", "no", "no such name"},
		{"no name any more", "d c h m L r r ?", "no", "no such name"},
		{"wrong socket type", "d c L 100 ?", "replace/0s", "protocol error: the peer is no publisher"},
		{"wrong socket type, every time: backs off", "d c L 100 ? N d c L 100 ? N d c L 100 ? N d c L 100 ? N d c L 100 ? N d c L 100 ? N d c L 100 ?",
			"replace/0s replace/0s replace/0s replace/60ms replace/220ms replace/540ms replace/900ms", "the peer is no publisher"},
		{"closes in the handshake, every time: taken over from libzmq", "d c f L r ? d c f L r ? d c f L r ? d c f L r ? d c f L r ?",
			"no no no no replace/320ms", "handshake failed"},
		{"breaks after the handshake, every time", "d c h L r d c h L r ?", "no", "again and again after the handshake, without a message: a frame larger"},
		{"a message makes good", "d c h L r d c h L r d c h L r d c h L r d c h m L r ?", "no", "connection lost"},
		{"the message drained with its loss makes good", "d c h L r d c h L r d c h L r d c h L r d c h L m r ?", "no", "again and again"},
		{"a quiet publisher is no bad one", "d c h 10000 L r d c h 10000 L r d c h 10000 L r d c h 10000 L r d c h 10000 L r ?", "no", "connection lost"},
		{"on the way again: not replaced", "d c h L r d c L r d c L r d c L r d c L r d c ?", "no", "connection lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := peer{interval: 20 * time.Millisecond, backoffMax: time.Second, maxMessageSize: 1000}
			now := time.Unix(1000, 0)
			var verdicts []string
			for _, step := range strings.Fields(c.script) {
				switch step {
				case "m":
					p.messageReceived()
				case "N":
					p.replaced()
				case "?":
					replace, pause, check := p.verdict(now)
					switch {
					case replace:
						verdicts = append(verdicts, fmt.Sprint("replace/", pause))
					case check > 0:
						verdicts = append(verdicts, fmt.Sprint("no/", check))
					default:
						verdicts = append(verdicts, "no")
					}
				default:
					var ms int
					if _, err := fmt.Sscan(step, &ms); err == nil {
						now = now.Add(time.Duration(ms) * time.Millisecond)
						continue
					}
					p.event(map[string]zmq.Event{
						"d": zmq.EVENT_CONNECT_DELAYED, "r": zmq.EVENT_CONNECT_RETRIED, "c": zmq.EVENT_CONNECTED,
						"h": zmq.EVENT_HANDSHAKE_SUCCEEDED, "f": zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, "L": zmq.EVENT_DISCONNECTED,
					}[step], now)
				}
			}
			if got := strings.Join(verdicts, " "); got != c.verdicts {
				t.Errorf("verdicts %q, want %q", got, c.verdicts)
			}
			if !strings.Contains(p.trouble, c.trouble) || c.trouble == "" && p.trouble != "" {
				t.Errorf("trouble %q, want %q in it", p.trouble, c.trouble)
			}
		})
	}
}
