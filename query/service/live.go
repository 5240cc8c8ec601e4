package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/kvjournal/kvjournal/journal/pause"
)

// A running recorder tells in DIR/live.json where it listens. The socket is in the directory where its path is short
// enough for a socket, and in a private directory under the system's temporary one otherwise.
const (
	liveFile   = "live.json"
	socketFile = "kvjournal.sock"
	// maxSocketPath: sockaddr_un holds 108 bytes on Linux, 104 elsewhere, a final zero included.
	maxSocketPath = 100
)

type liveInfo struct {
	PID    int    `json:"pid"`
	Socket string `json:"socket"`
}

// listen opens the socket of dir and tells of it. remove undoes both.
func listen(dir string) (l net.Listener, remove func(), err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(abs, socketFile)
	clean := func() { os.Remove(path) }
	if len(path) > maxSocketPath {
		private, err := os.MkdirTemp("", "kvjournal-")
		if err != nil {
			return nil, nil, fmt.Errorf("a place for the socket: %w", err)
		}
		path = filepath.Join(private, socketFile)
		clean = func() { os.RemoveAll(private) }
	}
	os.Remove(path) // of a recorder that was killed: the directory's claim is ours
	if l, err = net.Listen("unix", path); err != nil {
		return nil, nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, nil, err
	}
	b, err := json.Marshal(liveInfo{os.Getpid(), path})
	if err == nil {
		err = os.WriteFile(filepath.Join(abs, liveFile), append(b, '\n'), 0o600)
	}
	if err != nil {
		l.Close()
		clean()
		return nil, nil, fmt.Errorf("telling where the recorder listens: %w", err)
	}
	return l, func() {
		os.Remove(filepath.Join(abs, liveFile))
		clean()
	}, nil
}

// FindSocket returns the path of the socket of the recorder that runs on dir, waiting for one that is just starting.
func FindSocket(ctx context.Context, dir string, patience time.Duration) (string, error) {
	deadline := time.Now().Add(patience)
	for {
		path, err := dialable(filepath.Join(dir, liveFile))
		if err == nil {
			return path, nil
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("it does not answer questions, ask again when it has ended: %w", err)
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return "", err
		}
	}
}

func dialable(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var info liveInfo
	if err := json.Unmarshal(b, &info); err != nil || info.Socket == "" {
		return "", errors.New(file + " does not decode")
	}
	c, err := net.DialTimeout("unix", info.Socket, time.Second)
	if err != nil {
		return "", err
	}
	c.Close()
	return info.Socket, nil
}
