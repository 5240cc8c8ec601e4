package service_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kvjournal/kvjournal/journal/recorder"
	"github.com/kvjournal/kvjournal/query/httpapi"
	"github.com/kvjournal/kvjournal/query/service"
)

// held is what a process holds that must be given back.
type held struct{ goroutines, descriptors int }

func holds(t *testing.T) held {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("this system does not list descriptors")
	}
	return held{runtime.NumGoroutine(), len(fds)}
}

// givesBack runs f, which may leave behind what is made once for a process, then runs it again and again: then no more may be held than
// before.
func givesBack(t *testing.T, f func()) {
	t.Helper()
	f()
	before := settled(t)
	for range 5 {
		f()
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	var after held
	for end := time.Now().Add(20 * time.Second); ; <-look.C {
		if after = holds(t); after.goroutines <= before.goroutines && after.descriptors <= before.descriptors {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	stacks := make([]byte, 1<<20)
	t.Fatalf("holds %+v, before it was %+v\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
}

// settled is what is held when that has been the same for a while.
func settled(t *testing.T) held {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	last, same := holds(t), 0
	for end := time.Now().Add(20 * time.Second); same < 10 && time.Now().Before(end); <-look.C {
		if now := holds(t); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}

// onDisk is a directory with the capture of writeCapture imported.
func onDisk(t *testing.T) (dir, capturePath string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	capturePath = filepath.Join(t.TempDir(), "small.kvcap")
	mem := vfs.NewMem()
	writeCapture(t, mem)
	if _, err := vfs.Clone(mem, vfs.Default, "small.kvcap", capturePath); err != nil {
		t.Fatal(err)
	}
	w, err := service.OpenForWriting(t.Context(), dir, "test", service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Import(t.Context(), "s", capturePath, recorder.ImportOptions{})
	if err := errors.Join(err, w.Finish(t.Context()), w.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, capturePath
}

func TestOpenAndCloseGiveBack(t *testing.T) {
	dir, capture := onDisk(t)
	t.Run("writing", func(t *testing.T) {
		givesBack(t, func() {
			w, err := service.OpenForWriting(t.Context(), dir, "test", service.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Import(t.Context(), "s", capture, recorder.ImportOptions{Again: true})
			if err := errors.Join(err, w.Close()); err != nil { // without Finish: the index is behind
				t.Fatal(err)
			}
		})
	})
	t.Run("reading", func(t *testing.T) {
		givesBack(t, func() {
			a, err := service.OpenAtRest(t.Context(), dir, service.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			err = httpapi.Run(ctx, &a.Engine, "log", url.Values{}, nil, func(any) error {
				if n++; n == 10 {
					cancel()
				}
				return ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a log that was cancelled midway: %v", err)
			}
			for _, name := range []string{"objects", "gaps", "activity", "lifetimes", "export"} {
				if err := httpapi.Run(ctx, &a.Engine, name, url.Values{}, nil, func(any) error { return ctx.Err() }); err == nil && name != "gaps" {
					t.Errorf("%s answered though it was cancelled", name)
				}
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("cancelled opening", func(t *testing.T) {
		givesBack(t, func() {
			w, err := service.OpenForWriting(t.Context(), dir, "test", service.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Import(t.Context(), "s", capture, recorder.ImportOptions{Again: true})
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if a, err := service.OpenAtRest(ctx, dir, service.Options{}); err == nil {
				a.Close()
			}
			if _, err := service.OpenForWriting(t.Context(), filepath.Join(capture, "no directory"), "test", service.Options{}); err == nil {
				t.Error("a directory in a file was opened")
			}
		})
	})
}

// recording starts a recorder of dir, of a publisher that is not there, and waits until it answers questions.
func recording(t *testing.T, ctx context.Context, dir, master string) (*service.Service, *httpapi.Client) {
	t.Helper()
	source := service.SourceConfig{Name: "s", Endpoints: []string{"tcp://127.0.0.1:1"}}
	if master != "" {
		source.Masters = []string{master}
	}
	s, err := service.Record(ctx, service.Config{Dir: dir, Sources: []service.SourceConfig{source}, Master: service.MasterConfig{PollEvery: 100 * time.Millisecond, AuditEvery: -1}})
	if err != nil {
		t.Fatal(err)
	}
	socket, err := service.FindSocket(ctx, dir, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return s, httpapi.NewClient(socket)
}

// follow asks for a log that does not end, and returns when the first line has come; done gives the end.
func follow(ctx context.Context, client *httpapi.Client) (done <-chan error) {
	first, ended := make(chan bool, 1), make(chan error, 1)
	go func() {
		ended <- client.Ask(ctx, "log", url.Values{"follow": {"true"}}, nil, func([]byte) error {
			select {
			case first <- true:
			default:
			}
			return nil
		})
	}()
	<-first
	return ended
}

// TestRecordGivesBack: a recorder that ends: of a publisher that is not there, of a master that never answers a poll or a reading, and while
// it is followed. And one that could not begin.
func TestRecordGivesBack(t *testing.T) {
	asked := make(chan bool, 1)
	master := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- true:
		default:
		}
		<-r.Context().Done()
	}))
	defer master.Close()
	dir, _ := onDisk(t)
	givesBack(t, func() {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s, client := recording(t, ctx, dir, master.URL)
		ended := follow(t.Context(), client)
		<-asked
		reading := make(chan error, 1)
		go func() {
			_, err := client.Reconcile(t.Context(), url.Values{}, func(*httpapi.ReconcileLine) error { return nil })
			reading <- err
		}()
		stop()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
		<-ended
		if err := <-reading; err == nil {
			t.Error("a master that does not answer was read")
		}
		client.Close()
		bad := service.Config{Dir: dir, Sources: []service.SourceConfig{{Name: "s", Endpoints: []string{"tcp://127.0.0.1:1"}, Masters: []string{"no URL"}}}}
		if _, err := service.Record(t.Context(), bad); err == nil {
			t.Error("a recorder of a master that is none began")
		}
	})
}

// TestFollowersThatVanish: followers that go away, and questions that are given up midway, leave nothing behind in the recorder.
func TestFollowersThatVanish(t *testing.T) {
	dir, _ := onDisk(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s, client := recording(t, ctx, dir, "")
	givesBack(t, func() {
		gone, vanish := context.WithCancel(t.Context())
		var all []<-chan error
		for range 10 {
			all = append(all, follow(gone, client))
		}
		vanish()
		for _, ended := range all {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("a follower that vanished: %v", err)
			}
		}
		enough := errors.New("enough")
		for _, name := range []string{"log", "activity", "export", "objects"} {
			values := url.Values{}
			if name == "objects" {
				values.Set("state", "any")
			}
			err := client.Ask(t.Context(), name, values, nil, func([]byte) error { return enough })
			if !errors.Is(err, enough) {
				t.Errorf("%s given up midway: %v", name, err)
			}
		}
		client.Close()
	})
	stop()
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}
