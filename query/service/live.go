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
	if l, err = listenPrivate(path); err != nil {
		clean()
		return nil, nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	b, err := json.Marshal(liveInfo{os.Getpid(), path})
	if err == nil {
		err = replaceFile(filepath.Join(abs, liveFile), append(b, '\n'))
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

// listenPrivate opens a socket at path that only its owner may connect to, from the moment on that it is there: it is made in a directory
// that others cannot enter. One that is there is of a recorder that was killed: the directory's claim is ours.
func listenPrivate(path string) (net.Listener, error) {
	private := filepath.Join(filepath.Dir(path), ".new") // a path that is no longer than path
	if err := os.RemoveAll(private); err != nil {
		return nil, err
	}
	if err := os.Mkdir(private, 0o700); err != nil {
		return nil, err
	}
	defer os.RemoveAll(private)
	made := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it gets another name
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// replaceFile writes a file that only its owner may read, whole.
func replaceFile(path string, content []byte) error {
	if err := os.Remove(path + ".tmp"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(path+".tmp", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
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
