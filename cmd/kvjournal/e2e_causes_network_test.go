package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/kvjournal/kvjournal/journal/continuity"
	"github.com/kvjournal/kvjournal/query"
)

// fat makes an event large, so that few fill the sockets' buffers.
var fat = strings.Repeat("s", 32<<10)

// The publisher runs over its mark while the recorder is stopped.
func causeTransport(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 3).bind("")
	dir := dataDir(t)
	rec := w.record(dir)
	w.send(1)
	recordedSeq(t, dir, 1)
	w.salt = fat
	rec.signal(t, syscall.SIGSTOP)
	w.drop(12)
	rec.signal(t, syscall.SIGCONT)
	for range 3 {
		w.push(nothing)
	}
	recordedSeq(t, dir, w.seq)
	rec.stop(t)
	return dir, w.between(continuity.Transport)
}

// The publisher has sent seven messages before anybody listens.
func causeLateJoin(t *testing.T) (string, []query.GapOut) {
	w := newWire(t, 1000).bind("")
	w.send(7)
	dir := dataDir(t)
	rec := w.record(dir)
	w.send(2)
	recordedSeq(t, dir, 9)
	rec.stop(t)
	return dir, []query.GapOut{missingSeqs(continuity.LateJoin, 1, 1, 7)}
}

// shut breaks what passes through the proxy, and lets nothing through until it is opened again.
func (p *proxy) shut(on bool) {
	p.mu.Lock()
	p.closed = on
	p.mu.Unlock()
	if on {
		p.cut(false)
	}
}

// networkFails records a publisher behind a proxy, which is cut while the publisher sends so many messages.
func networkFails(t *testing.T, meanwhile int) (w *wire, dir string, rec *process) {
	w = newWire(t, 1000).bind("")
	p, endpoint := newProxy(t, w.endpoint)
	w.endpoint = endpoint // where the recorder finds it
	dir = dataDir(t)
	rec = w.record(dir)
	w.send(5)
	recordedSeq(t, dir, 5)
	before := connections(t, dir)
	p.shut(true)
	w.subscribed(false)
	w.send(meanwhile)
	p.shut(false)
	w.subscribed(true)
	connectedAgain(t, dir, before)
	w.send(3)
	recordedSeq(t, dir, w.seq)
	return w, dir, rec
}

// The network fails, and the publisher sends meanwhile.
func causeDisconnected(t *testing.T) (string, []query.GapOut) {
	_, dir, rec := networkFails(t, 4)
	rec.stop(t)
	return dir, []query.GapOut{missingSeqs(continuity.Disconnected, 1, 6, 9)}
}

// The network fails, and then the recorder stops and starts, and nothing is sent meanwhile.
func causeReconnect(t *testing.T) (string, []query.GapOut) {
	w, dir, rec := networkFails(t, 0)
	rec.stop(t)
	w.subscribed(false)
	rec = w.record(dir)
	w.send(3)
	recordedSeq(t, dir, w.seq)
	rec.stop(t)
	none := uint64(0)
	g := query.GapOut{Cause: "reconnect", Epoch: 1, MissingSeqs: &none}
	return dir, []query.GapOut{g, g}
}
