package httpapi

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

func TestListenCheck(t *testing.T) {
	for _, c := range []struct {
		listen Listen
		say    string // empty: it is right
	}{
		{Listen{}, ""},
		{Listen{Address: DefaultAddress}, ""},
		{Listen{Address: "localhost:0"}, ""},
		{Listen{Address: "[::1]:8900"}, ""},
		{Listen{Address: "8900"}, "HOST:PORT"},
		{Listen{Address: "127.0.0.1"}, "HOST:PORT"},
		{Listen{Address: ":8900"}, "--token-file"},
		{Listen{Address: "0.0.0.0:8900"}, "--insecure-listen"},
		{Listen{Address: "kv.example:8900"}, "--token-file"},
		{Listen{Address: "0.0.0.0:8900", Insecure: true}, ""},
		{Listen{Address: "0.0.0.0:8900", TokenFile: "t"}, ""},
		{Listen{Address: DefaultAddress, TLSCert: "c"}, "--tls-key"},
	} {
		err := c.listen.Check()
		var usage *query.UsageError
		if (err == nil) != (c.say == "") || err != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%+v: %v, want %q", c.listen, err, c.say)
		}
	}
}

// A port that is taken is told in words; where the address was no demand the service goes on without.
func TestListenTaken(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	server := NewServer(log)
	defer server.End()
	first := Listen{Address: "127.0.0.1:0"}
	at, err := first.Start(server, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	second := Listen{Address: at.String()}
	if _, err := second.Start(server, nil, log); err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("a taken port: %v", err)
	}
	second.Optional = true
	if got, err := second.Start(server, nil, log); err != nil || got != nil {
		t.Errorf("a taken port that was no demand: %v, %v", got, err)
	}
}

func TestParseTokens(t *testing.T) {
	const long, other = "0123456789abcdef", "fedcba9876543210"
	for text, want := range map[string]string{
		"# of the router\n" + long + "\n\n  " + other + "  \n": "", "": "no token", "# none\n": "no token", "short": "line 1", long + "\na b " + long: "line 2",
	} {
		tokens, err := parseTokens([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err == nil && len(tokens) != 2 {
			t.Errorf("%q: %d tokens", text, len(tokens))
		}
	}
}

// Tokens that change count from then on; what cannot be read leaves those before.
func TestTokensChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first-token-first")
	w, err := watch("--token-file", slog.New(slog.DiscardHandler), parseTokenFile, path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	w.now = func() time.Time { return now }
	allows := func(text string) bool { t := w.get(); want, _ := parseTokens([]byte(text)); return has(t, want[0]) }
	write("the second token is bad")
	now = now.Add(time.Minute)
	if !allows("first-token-first") {
		t.Error("a file that cannot be read took the token that was there")
	}
	write("third-token-third-token")
	if !allows("first-token-first") {
		t.Error("looked at again at once")
	}
	now = now.Add(time.Minute)
	if allows("first-token-first") || !allows("third-token-third-token") {
		t.Error("the new token does not count")
	}
	rights, err := readTokens("", path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if rights("") != Read || rights("third-token-third-token") != Reconcile || rights("x") != Read {
		t.Error("with a token for reconciling alone anybody may ask, and its bearer more")
	}
}

func TestEventIDs(t *testing.T) {
	for text, want := range map[string]EventID{"0": {}, "12": {Offset: 12}, "12/0": {12, true, 0}, "12/3": {12, true, 3}} {
		id, err := ParseEventID(text)
		if err != nil || id != want || id.String() != text {
			t.Errorf("%q: %+v, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "12/", "12/x", "0/1", "12/4294967296", "99999999999999999999", "1/2/3"} {
		if id, err := ParseEventID(text); err == nil {
			t.Errorf("%q: %+v", text, id)
		}
	}
	// In the order in which they are told; each lies behind all before it, and not behind itself.
	order := []string{"0", "3", "4/0", "4/1", "4/2", "4", "5/1"}
	for i, a := range order {
		for k, b := range order {
			x, _ := ParseEventID(a)
			y, _ := ParseEventID(b)
			if x.behind(y) != (k > i) {
				t.Errorf("%s behind %s: %v", b, a, x.behind(y))
			}
		}
	}
}
