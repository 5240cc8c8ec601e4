package journal

import (
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// syncFS is a filesystem whose write-ahead logs are synced when the test allows it, and fail when it says so.
type syncFS struct {
	vfs.FS
	mu     sync.Mutex
	closed chan struct{} // not nil: syncs wait until it is closed
	fail   error
	// waiting gets a value for each sync that waits.
	waiting chan string
}

func newSyncFS(base vfs.FS) *syncFS { return &syncFS{FS: base, waiting: make(chan string, 1000)} }

// hold makes syncs wait; the returned function lets them go on, with err.
func (s *syncFS) hold(t *testing.T) (release func(err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.closed = c
	var once sync.Once
	release = func(err error) {
		once.Do(func() {
			s.mu.Lock()
			s.closed, s.fail = nil, err
			s.mu.Unlock()
			close(c)
		})
	}
	t.Cleanup(func() { release(nil) }) // else Close would wait
	return release
}

func (s *syncFS) sync(name string, f func() error) error {
	s.mu.Lock()
	c := s.closed
	s.mu.Unlock()
	if c != nil {
		s.waiting <- name
		<-c
	}
	s.mu.Lock()
	err := s.fail
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return f()
}

func (s *syncFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return &syncFile{File: f, name: name, fs: s}, nil
}

func (s *syncFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.Create(name, c)
	return s.wrap(name, f, err)
}

func (s *syncFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(old, name, c)
	return s.wrap(name, f, err)
}

func (s *syncFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := s.FS.OpenReadWrite(name, c, o...)
	return s.wrap(name, f, err)
}

func (s *syncFS) Unwrap() vfs.FS { return s.FS }

type syncFile struct {
	vfs.File
	name string
	fs   *syncFS
}

func (f *syncFile) Sync() error     { return f.fs.sync(f.name, f.File.Sync) }
func (f *syncFile) SyncData() error { return f.fs.sync(f.name, f.File.SyncData) }
func (f *syncFile) SyncTo(n int64) (full bool, err error) {
	err = f.fs.sync(f.name, func() error { full, err = f.File.SyncTo(n); return err })
	return full, err
}
