package mooncake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

const listingKind = "text/plain; version=0.0.4"

func list(t *testing.T, c *Client) ([]string, Listing, error) {
	t.Helper()
	var keys []string
	l, err := c.Keys(t.Context(), func(key []byte) error {
		keys = append(keys, string(key))
		return nil
	})
	return keys, l, err
}

func TestKeys(t *testing.T) {
	long := strings.Repeat("x", 3*listBuffer+7)
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"an empty store", "", nil},
		{"one", "a\n", []string{"a"}},
		{"any bytes", "a\r\n\xff\x00,%\n é \n", []string{"a\r", "\xff\x00,%", " é "}},
		{"a key with a newline cannot be told apart", "two\nlines\n", []string{"two", "lines"}},
		{"an empty line", "\na\n", []string{"", "a"}},
		{"longer than the buffer", "a\n" + long + "\nb\n", []string{"a", long, "b"}},
		{"as long as the buffer", long[:listBuffer-1] + "\n" + long[:listBuffer] + "\n", []string{long[:listBuffer-1], long[:listBuffer]}},
		{"no escaping at all", "<html>\n{\"success\":false}\n", []string{"<html>", `{"success":false}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys, l, err := list(t, serve(t, always(200, listingKind, c.body), Options{}))
			if err != nil || !slices.Equal(keys, c.want) || l.Keys != int64(len(c.want)) || l.Bytes != int64(len(c.body)) {
				t.Errorf("%.200q, %+v, %v", keys, l, err)
			}
			// The same in chunks, as a proxy may send it.
			chunked := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", listingKind)
				w.(http.Flusher).Flush()
				for b := []byte(c.body); len(b) > 0; {
					n := min(len(b), 1000)
					_, _ = w.Write(b[:n])
					b = b[n:]
				}
			})
			if again, _, err := list(t, serve(t, chunked, Options{})); err != nil || !slices.Equal(keys, again) {
				t.Errorf("in chunks: %v", err)
			}
		})
	}
}

// TestKeysCut: a listing that was cut anywhere is an error.
func TestKeysCut(t *testing.T) {
	const body = "key-1\nkey-2\nkey-3\n"
	for n := range len(body) {
		for _, c := range []struct{ name, reply string }{
			{"length", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", listingKind, len(body), body[:n])},
			{"chunks", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", listingKind, len(body), body[:n])},
			{"no last chunk", fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", listingKind, n+1, body[:n+1])},
		} {
			_, l, err := list(t, serve(t, raw(c.reply), Options{}))
			var odd *BrokenReplyError
			if !errors.As(err, &odd) || !odd.Cut || l != (Listing{}) {
				t.Errorf("%s, cut after %d: %+v, %v", c.name, n, l, err)
			}
		}
	}
}

func TestKeysBroken(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     http.HandlerFunc
		what  string
		isCut bool
	}{
		{"no end of the last line", always(200, listingKind, "a\nb"), "ends in the middle, though all its 3 bytes came", true},
		{"a web page", always(200, "text/html", "<html>\n"), `the content type is "text/html"`, false},
		{"no content type", always(200, "", "a\n"), `the content type is ""`, false},
		{"JSON", always(200, "application/json", "{}\n"), "content type", false},
		{"neither length nor chunks", raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na\n"), "no Content-Length", false},
		{"HTTP/1.0", raw("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\na\n"), "no Content-Length", false},
		{"compressed", raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\na\n"), "compressed", false},
		{"a part", raw("HTTP/1.1 206 Partial Content\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\na\n"), "Partial Content", false},
		{"nothing", raw("HTTP/1.1 204 No Content\r\n\r\n"), "No Content", false},
		{"longer than allowed, announced", always(200, listingKind, strings.Repeat("a\n", 600)), "more than 1000 bytes", false},
		{"longer than allowed", raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4b0\r\n" +
			strings.Repeat("a\n", 600) + "\r\n0\r\n\r\n"), "more than 1000 bytes", false},
		{"a key longer than allowed", always(200, listingKind, "a\n"+strings.Repeat("x", 101)+"\n"), "a key has more than 100 bytes", false},
		{"one without end", always(200, listingKind, strings.Repeat("x", 500)), "a key has more than 100 bytes", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := list(t, serve(t, c.h, Options{MaxListing: 1000, MaxKey: 100}))
			var odd *BrokenReplyError
			if !errors.As(err, &odd) || !strings.Contains(err.Error(), c.what) || odd.Cut != c.isCut {
				t.Errorf("%v, want %q", err, c.what)
			}
		})
	}
	exact := strings.Repeat("x", 100) + "\n"
	if keys, _, err := list(t, serve(t, always(200, listingKind, exact), Options{MaxKey: 100, MaxListing: 101})); err != nil || len(keys) != 1 {
		t.Errorf("exactly as long as allowed: %v", err)
	}
}

func TestKeysCallback(t *testing.T) {
	h := always(200, listingKind, strings.Repeat("some key\n", 100_000))
	var calls []Call
	c := serve(t, h, Options{OnCall: func(call Call) { calls = append(calls, call) }})
	enough := errors.New("enough")
	n := 0
	_, err := c.Keys(t.Context(), func([]byte) error {
		if n++; n == 10 {
			return enough
		}
		return nil
	})
	if err != enough || n != 10 {
		t.Errorf("%v after %d keys", err, n)
	}
	if d, _ := c.pacer.backoff(KindKeys, c.options.Clock.Now()); d != 0 {
		t.Errorf("the caller's error backs off %v", d)
	}
	if keys, _, err := list(t, c); err != nil || len(keys) != 100_000 {
		t.Errorf("afterwards: %d keys, %v", len(keys), err)
	}
	if len(calls) != 2 || calls[1].Bytes != 900_000 || calls[1].Err != nil || calls[1].Kind != KindKeys {
		t.Errorf("%+v", calls)
	}
}

// TestMillionKeys: a million keys of 82 bytes pass through less memory than a tenth of them fills.
func TestMillionKeys(t *testing.T) {
	const n, size = 1_000_000, 82
	line := append(bytes.Repeat([]byte("k"), size-1), '\n')
	block := bytes.Repeat(line, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", listingKind)
		w.Header().Set("Content-Length", fmt.Sprint(n*size))
		for range n / 1000 {
			_, _ = w.Write(block)
		}
	}))
	defer server.Close()
	c := serve(t, nil, Options{URL: server.URL})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := c.Keys(t.Context(), func(key []byte) error {
		if len(key) != size-1 {
			return fmt.Errorf("%d bytes", len(key))
		}
		return nil
	})
	runtime.ReadMemStats(&after)
	if err != nil || l.Keys != n || l.Bytes != n*size {
		t.Fatalf("%+v, %v", l, err)
	}
	// All that client and server allocated, whether still used or not.
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 4<<20 {
		t.Errorf("%d bytes allocated", grew)
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc\n"), 3)
	f.Add([]byte("no end"), 100)
	f.Fuzz(func(t *testing.T, body []byte, maxLine int) {
		maxLine = 1 + maxLine&0xff
		for _, r := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body)), iotest.DataErrReader(bytes.NewReader(body))} {
			var got []string
			n, err := readLines(r, maxLine, func(line []byte) error {
				got = append(got, string(line))
				return nil
			})
			if int(n) != len(got) {
				t.Fatalf("%d lines, told %d", len(got), n)
			}
			text, whole := strings.CutSuffix(string(body), "\n")
			want := strings.Split(text, "\n")
			if len(body) == 0 {
				want, whole = nil, true
			}
			for _, line := range want {
				whole = whole && len(line) <= maxLine
			}
			if (err == nil) != whole || whole && !slices.Equal(got, want) {
				t.Fatalf("%q, at most %d: %q, %v", body, maxLine, got, err)
			}
		}
	})
}
