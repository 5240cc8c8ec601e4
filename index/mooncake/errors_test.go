package mooncake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// kindOf names the type of an error.
func kindOf(err error) string {
	switch {
	case errors.As(err, new(*StandbyError)):
		return "standby"
	case errors.As(err, new(*BrokenReplyError)):
		return "broken"
	case errors.As(err, new(*DeniedError)):
		return "denied"
	case errors.As(err, new(*UnreachableError)):
		return "unreachable"
	case errors.As(err, new(*TimeoutError)):
		return "timeout"
	}
	return fmt.Sprint(err)
}

// TestErrors: each says where, what and what next; %s is the address.
func TestErrors(t *testing.T) {
	const token = "s3cr3t-token"
	for _, c := range []struct {
		name string
		h    http.HandlerFunc
		kind string
		text string
	}{
		{"standby", always(503, "application/json", onStandby), "standby",
			`GET %s: a standby: "service plane is not active"; ask the leader of its group, or wait until this one leads`},
		{"503 in text", always(503, "", refusedText), "broken",
			`GET %s: no master's reply: status 503, Service Unavailable (it begins "503 Service Unavailable"); see what answers at this address`},
		{"503 page", always(503, "text/html", "<html>\n<h1>down</h1>"), "broken",
			`GET %s: no master's reply: status 503, Service Unavailable (it begins "<html>\n<h1>down</h1>"); see what answers at this address: this is a web page`},
		{"503, cut JSON", always(503, "application/json", onStandby[:40]), "broken",
			`GET %s: no master's reply: status 503, Service Unavailable (it begins "{\"success\":false,\"error_code\":-1011,\"err"); see what answers at this address`},
		{"503, another code", always(503, "application/json", `{"success":false,"error_code":-5,"error_message":"busy"}`), "broken",
			`GET %s: no master's reply: status 503, "busy" (it begins "{\"success\":false,\"error_code\":-5,\"error_message\":\"busy\"}"); see what answers at this address`},
		{"503, broken off", raw("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 100\r\n\r\n"), "broken",
			`GET %s: no master's reply: status 503, cut after 0 of 100 bytes; nothing of it was used; ask again`},
		{"200 page", always(200, "text/html", "<!DOCTYPE html><title>Log in</title>"), "broken",
			`GET %s: no master's reply: status 200, no JSON: invalid character '<' looking for beginning of value (it begins "<!DOCTYPE html><title>Log in</title>"); see what answers at this address: this is a web page`},
		{"200, broken off", raw("HTTP/1.1 200 OK\r\nContent-Length: 121\r\n\r\n" + statusOld[:60]), "broken",
			`GET %s: no master's reply: status 200, cut after 60 of 121 bytes; nothing of it was used; ask again`},
		{"200, cut JSON", always(200, "application/json", statusOld[:60]), "broken",
			`GET %s: no master's reply: status 200, it ends in the middle, though all its 60 bytes came; nothing of it was used; ask again`},
		{"404", always(404, "text/plain", missingText), "broken",
			`GET %s: no master's reply: status 404, Not Found (it begins "404 Not Found"); see whether this is the admin port (9003 by default), and the master new enough to know this call`},
		{"401", always(401, "", ""), "denied", `GET %s: status 401: the token was not accepted; check the token of this master`},
		{"429", always(429, "", ""), "broken",
			`GET %s: no master's reply: status 429, Too Many Requests; something in front of the master limits the rate; raise the pause factor`},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example/start?for="+token, http.StatusFound)
		}, "broken", `GET %s: no master's reply: status 302, a redirect to https://login.example/start, which is not followed`},
		{"redirect to another path", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/query_key?key=a")
			w.WriteHeader(307)
		}, "broken", `which is not followed; give the address of the master itself`},
		{"the token echoed", always(500, "text/plain", "you sent "+token), "broken", `GET %s: no master's reply: status 500, Internal Server Error; see`},
		{"the token echoed in JSON", always(500, "application/json", `{"error":"bad token `+token+`"}`), "broken", `status 500, "bad token ***"; see`},
		{"the token echoed by a standby", always(503, "application/json", `{"error_code":-1011,"error_message":"`+token+`"}`), "standby", `a standby: "***"`},
		{"the token echoed by a standby with 200", always(200, "application/json", `{"error_code":-1011,"error_message":"`+token+`"}`), "standby", `a standby: "***"`},
		{"the token at the excerpt's edge", always(200, "text/plain", strings.Repeat("x", 150)+token), "broken", "invalid character 'x' looking for beginning of value; see"},
		{"the token as no HTTP", raw(token + "\r\n\r\n"), "broken", `not HTTP: malformed HTTP response "***"`},
		{"long", always(500, "text/plain", strings.Repeat("x", 100_000)), "broken", strings.Repeat("x", excerptBytes) + `..."`},
		{"a publisher's socket", raw("\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL\n"), "broken",
			"what listens there: a publisher's socket (5557 by default) is not the admin port (9003)"},
		{"endless headers", raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10)), "broken", "not HTTP: net/http: server response headers exceeded 65536 bytes"},
		{"hung up", raw(""), "unreachable", `GET %s: unreachable: the connection was closed without a reply: EOF; see whether the master runs and this is its admin port (9003 by default)`},
		{"too much", always(200, "application/json", `{"enabled":true,"x":"`+strings.Repeat("x", 5000)+`"}`), "broken", `more than 4096 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, c.h, Options{Token: token, MaxReply: 4096})
			_, err := client.Status(t.Context())
			if kindOf(err) != c.kind {
				t.Fatalf("%s: %v", kindOf(err), err)
			}
			if want := strings.ReplaceAll(c.text, "%s", client.URL()+"/kv_events/status"); !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), token) {
				t.Errorf("the token is told: %#v", err)
			}
			if n := len(err.Error()); n > 600 {
				t.Errorf("%d bytes long", n)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	nobody, err := mooncaketest.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Release()
	var lost *UnreachableError
	_, err = serve(t, nil, Options{URL: "http://" + nobody.Address()}).Status(t.Context())
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "connection refused; see whether the master runs") {
		t.Errorf("%v", err)
	}
	// A resolver that has no network may take longer than the call may: it is not asked.
	unknown := serve(t, nil, Options{URL: "http://no-such-host.invalid:9003"})
	unknown.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}}
	}
	_, err = unknown.Status(t.Context())
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "http://no-such-host.invalid:9003/kv_events/status") {
		t.Errorf("%v", err)
	}
}

// TestRedirectsAreNotFollowed, not even to a path of the same master.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var visits atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		visits.Add(1)
		send(w, 200, "application/json", statusOld)
	}))
	defer other.Close()
	for _, to := range []string{other.URL + "/kv_events/status", "/query_key", "/kv_events/status", "://"} {
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/kv_events/status" {
				visits.Add(1)
			}
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusMovedPermanently)
		}), Options{Token: "x"})
		var odd *BrokenReplyError
		if _, err := c.Status(t.Context()); !errors.As(err, &odd) || odd.Status != 301 || visits.Load() != 0 {
			t.Errorf("%s: %v, %d visits", to, err, visits.Load())
		}
	}
}

// TestToken is sent as it should, and only if there is one.
func TestToken(t *testing.T) {
	for _, token := range []string{"", "abc.def-123"} {
		var got []string
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header["Authorization"]
			send(w, 403, "", "")
		}), Options{Token: token})
		_, err := c.Status(t.Context())
		var denied *DeniedError
		if !errors.As(err, &denied) || denied.Sent != (token != "") || denied.Status != 403 {
			t.Errorf("%v", err)
		}
		if want := "[Bearer " + token + "]"; token != "" && fmt.Sprint(got) != want || token == "" && got != nil {
			t.Errorf("sent %q", got)
		}
	}
}

// TestBatchErrorsAreShort: the keys of a call are counted, not printed.
func TestBatchErrorsAreShort(t *testing.T) {
	c := serve(t, always(502, "", ""), Options{})
	_, err := c.BatchQuery(t.Context(), keysOf("key-1", "key-2"))
	if err == nil || strings.Contains(err.Error(), "key-1") || !strings.Contains(err.Error(), "/batch_query_keys (2 keys): ") {
		t.Error(err)
	}
}
