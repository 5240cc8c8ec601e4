package httpapi

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// tokenLeast is how long a token is at least: it is all that stands between others and the data.
const tokenLeast = 16

// token is the hash of one: comparing hashes tells nothing by the time that it takes.
type token = [sha256.Size]byte

// parseTokens reads tokens, one a line; empty lines and those that begin with # are none.
func parseTokens(text []byte) ([]token, error) {
	var out []token
	in := bufio.NewScanner(bytes.NewReader(text))
	for line := 1; in.Scan(); line++ {
		t := strings.TrimSpace(in.Text())
		if t == "" || strings.HasPrefix(t, "#") {
			continue
		}
		if len(t) < tokenLeast || strings.ContainsAny(t, " \t") {
			return nil, fmt.Errorf("line %d: a token has %d characters at least, and no space; `openssl rand -hex 32` makes one", line, tokenLeast)
		}
		out = append(out, sha256.Sum256([]byte(t)))
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("there is no token in it; `openssl rand -hex 32` makes one")
	}
	return out, nil
}

// has reports whether t is among tokens.
func has(tokens []token, t token) bool {
	found := 0
	for i := range tokens {
		found |= subtle.ConstantTimeCompare(tokens[i][:], t[:])
	}
	return found == 1
}

// readTokens returns what the bearer of a token may do. readers empty: anybody may ask; reconcilers empty: nobody may have the master read.
func readTokens(readers, reconcilers string, log *slog.Logger) (func(string) Right, error) {
	none := func() []token { return nil }
	read, reconcile := none, none
	for _, f := range []struct {
		flag, path string
		get        *func() []token
	}{{"--token-file", readers, &read}, {"--reconcile-token-file", reconcilers, &reconcile}} {
		if f.path == "" {
			continue
		}
		w, err := watch(f.flag, log, parseTokenFile, f.path)
		if err != nil {
			return nil, err
		}
		*f.get = w.get
	}
	anybody := Open
	if readers == "" {
		anybody = Read
	}
	return func(text string) Right {
		if text == "" {
			return anybody
		}
		t := sha256.Sum256([]byte(text))
		switch {
		case has(reconcile(), t):
			return Reconcile
		case has(read(), t):
			return Read
		}
		return anybody
	}, nil
}

func parseTokenFile(files [][]byte) ([]token, error) { return parseTokens(files[0]) }

// readCertificate returns a TLS configuration with the certificate that the files hold at each moment.
func readCertificate(cert, key string, log *slog.Logger) (*tls.Config, error) {
	w, err := watch("--tls-cert, --tls-key", log, func(files [][]byte) (*tls.Certificate, error) {
		c, err := tls.X509KeyPair(files[0], files[1])
		return &c, err
	}, cert, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return w.get(), nil },
	}, nil
}

// lookEvery is how often files are looked at for a change, at most.
const lookEvery = time.Second

// watched is what some files hold, read again when they change. What cannot be read then is said, and what was there before stays.
type watched[T any] struct {
	flag  string
	paths []string
	parse func([][]byte) (T, error)
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	looked time.Time
	stamp  string
	value  T
}

func watch[T any](flag string, log *slog.Logger, parse func([][]byte) (T, error), paths ...string) (*watched[T], error) {
	w := &watched[T]{flag: flag, paths: paths, parse: parse, log: log, now: time.Now}
	w.looked, w.stamp = w.now(), w.stamps()
	var err error
	if w.value, err = w.read(); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return w, nil
}

// stamps tells one state of the files from another.
func (w *watched[T]) stamps() string {
	var b strings.Builder
	for _, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&b, "%d %d\n", info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

func (w *watched[T]) read() (v T, err error) {
	files := make([][]byte, len(w.paths))
	for i, path := range w.paths {
		if files[i], err = os.ReadFile(path); err != nil {
			return v, err
		}
	}
	if v, err = w.parse(files); err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(w.paths, ", "), err)
	}
	return v, err
}

// get is what the files hold.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Sub(w.looked) < lookEvery {
		return w.value
	}
	w.looked = now
	stamp := w.stamps()
	if stamp == w.stamp {
		return w.value
	}
	v, err := w.read()
	if err != nil {
		w.log.Warn("what changed cannot be read; what was there before counts", "flag", w.flag, "error", err.Error())
	} else {
		w.value = v
		w.log.Info("read again", "flag", w.flag)
	}
	w.stamp = stamp
	return w.value
}
