package httpapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// DefaultAddress is where a service listens unless it is told otherwise: for this machine alone.
const DefaultAddress = "127.0.0.1:8900"

// questionPatience is how long a question of others than the owner may be answered.
const questionPatience = 10 * time.Minute

// Listen says on which address a service answers others than the owner of the directory, and whom.
type Listen struct {
	// Address is HOST:PORT; empty: none. Port 0 is any that is free.
	Address string
	// Optional: where the port is taken the service goes on without.
	Optional bool
	// Page is what is at /; nil: nothing.
	Page http.Handler
	// TokenFile has the tokens of those who may ask, ReconcileTokenFile of those who may also have the master read; one a line. Without
	// the first anybody may ask, without the second nobody may have the master read but the owner. They are read again when they change.
	TokenFile, ReconcileTokenFile string
	// TLSCert and TLSKey are PEM files; empty: no TLS. They are read again when they change.
	TLSCert, TLSKey string
	// Insecure allows an address that others can reach without a token.
	Insecure bool
	// AllowHosts are names of this server in Host headers, beside addresses, localhost and the host's own.
	AllowHosts []string
}

// loopback reports whether only this machine can reach an address.
func loopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

// Check finds what is wrong with it, as a *query.UsageError.
func (c *Listen) Check() error {
	if c.Address == "" {
		return nil
	}
	own, err := loopback(c.Address)
	switch {
	case err != nil:
		return &query.UsageError{Message: fmt.Sprintf("--listen %q: %v; write HOST:PORT, as %s", c.Address, err, DefaultAddress)}
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return &query.UsageError{Message: "--tls-cert and --tls-key go together"}
	case !own && c.TokenFile == "" && !c.Insecure:
		return &query.UsageError{Message: fmt.Sprintf("--listen %s: others can reach this address, and nothing would keep them from asking; give --token-file, or --insecure-listen if that is meant", c.Address)}
	}
	return nil
}

// Start opens the address and answers there from s; it returns the address that it got, nil where there is none. Its errors are what
// Check finds, a file that cannot be read, and an address that cannot be had.
func (c *Listen) Start(server *Server, s Source, log *slog.Logger) (net.Addr, error) {
	return c.start(server, func(p Public) http.Handler { return PublicHandler(s, p) }, log)
}

// StartFront is Start before a handler that serves the same as Handler.
func (c *Listen) StartFront(server *Server, inner http.Handler, log *slog.Logger) (net.Addr, error) {
	return c.start(server, func(p Public) http.Handler { return PublicFront(inner, p) }, log)
}

func (c *Listen) start(server *Server, handler func(Public) http.Handler, log *slog.Logger) (net.Addr, error) {
	if err := c.Check(); err != nil || c.Address == "" {
		return nil, err
	}
	p := Public{Page: c.Page, Timeout: questionPatience}
	tokens, err := readTokens(c.TokenFile, c.ReconcileTokenFile, log)
	if err != nil {
		return nil, err
	}
	p.Rights = tokens
	if c.TokenFile == "" {
		p.Hosts = OwnNames(c.AllowHosts...)
	}
	var secure *tls.Config
	if c.TLSCert != "" {
		if secure, err = readCertificate(c.TLSCert, c.TLSKey, log); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", c.Address)
	if err != nil {
		err = listenError(c.Address, err)
		if c.Optional && errors.Is(err, syscall.EADDRINUSE) {
			log.Warn("no HTTP, all else goes on: "+err.Error(), "address", c.Address)
			return nil, nil
		}
		return nil, err
	}
	if own, _ := loopback(c.Address); !own && secure == nil && c.TokenFile != "" {
		log.Warn("tokens are sent in the clear: give --tls-cert and --tls-key, or put a proxy with TLS before it", "address", l.Addr())
	}
	server.Serve(l, handler(p), secure, "HTTP")
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	log.Info("answering", "url", fmt.Sprintf("%s://%s/", scheme, l.Addr()))
	return l.Addr(), nil
}

func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("--listen %s: something else listens there already (%w); choose another port, 0 for any that is free, or --listen '' for none", address, syscall.EADDRINUSE)
	}
	return fmt.Errorf("--listen %s: %w", address, err)
}
