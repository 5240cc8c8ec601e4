package mooncaketest

import (
	"fmt"
	"os"
	"syscall"
)

// Port is a TCP port of 127.0.0.1 that nobody else gets before Release: no listener is given it as a free one, and no outgoing connection of
// this machine begins at it. A socket that is bound to it by number, as libzmq's and Go's are with SO_REUSEADDR, may listen there, end, and
// listen again, in this process or another. While none does, connections to it are refused.
//
// Without it a port that a test lets go for a moment, to start its publisher anew, may belong to somebody else when it wants it back.
type Port struct {
	fd     int
	number int
}

// ReservePort takes a free port.
func ReservePort() (*Port, error) {
	fail := func(err error) (*Port, error) {
		return nil, fmt.Errorf("mooncaketest: reserve a port of 127.0.0.1: %w", os.NewSyscallError("socket", err))
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var at syscall.Sockaddr
	if err == nil {
		at, err = syscall.Getsockname(fd)
	}
	if err != nil {
		syscall.Close(fd)
		return fail(err)
	}
	return &Port{fd, at.(*syscall.SockaddrInet4).Port}, nil
}

// Address is HOST:PORT.
func (p *Port) Address() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

// Endpoint is the same for ZeroMQ.
func (p *Port) Endpoint() string { return "tcp://" + p.Address() }

// Release gives the port up. It must be called once.
func (p *Port) Release() { syscall.Close(p.fd) }

// Reserved is an endpoint whose port is the test's until its end, however often a publisher lets it go. t is a testing.TB; this package is
// part of a program, too, which is no test.
func Reserved(t interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}) string {
	t.Helper()
	p, err := ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p.Endpoint()
}
