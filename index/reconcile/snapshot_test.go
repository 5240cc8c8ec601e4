package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// snapshotText is a Snapshot made of the text that f gives when it is opened.
type snapshotText func(begun uint64) string

func (snapshotText) Name() string { return "snapshot" }

func (f snapshotText) Open(_ context.Context, begun uint64, alive func() error) (io.ReadCloser, error) {
	if err := alive(); err != nil {
		return nil, err
	}
	return io.NopCloser(strings.NewReader(f(begun))), nil
}

// dump is the truth as a snapshot.
func (w *world) dump(begun uint64) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, `{"snapshot":1,"begun":%d,"tenants":["default","other","empty"]}`+"\n", begun)
	n := 0
	for o, m := range w.truth {
		media := []string{}
		for _, e := range each {
			if m&e.present != 0 {
				media = append(media, `"`+string(e.name)+`"`)
			}
		}
		key := fmt.Sprintf("%q", o.key)
		if o.key == "bad\xff" {
			key = `"x","object_key_base64":"YmFk/w=="`
		}
		fmt.Fprintf(b, `{"backend_id":"b0","tenant_id":%q,"object_key":%s,"media":[%s]}`+"\n", o.tenant, key, strings.Join(media, ","))
		n++
	}
	fmt.Fprintf(b, `{"end":%d}`+"\n", n)
	return b.String()
}

func TestSnapshot(t *testing.T) {
	w, names := doubtful(t)
	w.do(mooncaketest.Change{Type: event.Stored, Tenant: "other", Key: "unknown", Medium: disk})
	w.take()
	w.send(true)
	w.settleDown()
	names = append(names, name{"other", "unknown"})
	finish(w, true)
	report := w.read(w.runner(), Request{Snapshot: snapshotText(w.dump)})
	if len(report.Scopes) != 3 {
		t.Errorf("%+v", report)
	}
	for _, n := range names {
		for _, m := range w.answers([]name{n})[n] {
			if !m.Sure && n.key != "x\ny" {
				t.Errorf("%q of %s on %s is in doubt", n.key, n.tenant, m.Name)
			}
		}
	}
	w.want(t, "x\ny", "+-") // a snapshot can name it
	w.check("all of it", names)
}

func TestSnapshotClearedMeanwhile(t *testing.T) {
	w, names := doubtful(t)
	finish(w, true)
	s := snapshotText(func(begun uint64) string {
		out := w.dump(begun)
		w.do(mooncaketest.Change{Type: event.Removed, Tenant: "other", Key: "both", Medium: cpu}, clearedAll("other"))
		w.publish()
		return out
	})
	w.broken(w.runner(), Request{Snapshot: s}, ErrBroken)
	w.check("afterwards", names)
}

func TestSnapshotRefused(t *testing.T) {
	const first = `{"snapshot":1,"begun":%d,"tenants":["default"]}` + "\n"
	for name, text := range map[string]string{
		"no first line":     `{"tenant_id":"default","object_key":"k","media":["cpu"]}` + "\n" + `{"end":1}`,
		"another moment":    `{"snapshot":1,"begun":1}` + "\n" + `{"end":0}`,
		"cut":               first + `{"object_key":"k","media":["cpu"]}` + "\n",
		"cut in the middle": first + `{"object_key":"k","med`,
		"wrong count":       first + `{"object_key":"k","media":["cpu"]}` + "\n" + `{"end":2}`,
		"twice":             first + `{"object_key":"k","media":["cpu"]}` + "\n" + `{"object_key":"k","media":[]}` + "\n" + `{"end":2}`,
		"more behind":       first + `{"end":0}` + "\n" + `{"object_key":"k","media":["cpu"]}`,
		"another backend":   first + `{"backend_id":"b9","object_key":"k","media":["cpu"]}` + "\n" + `{"end":1}`,
		"another medium":    first + `{"object_key":"k","media":["gpu"]}` + "\n" + `{"end":1}`,
		"no media":          first + `{"object_key":"k"}` + "\n" + `{"end":1}`,
		"no key":            first + `{"media":["cpu"]}` + "\n" + `{"end":1}`,
		"raw bytes":         first + "{\"object_key\":\"\xff\",\"media\":[\"cpu\"]}\n" + `{"end":1}`,
		"no tenant":         `{"snapshot":1,"begun":%d}` + "\n" + `{"end":0}`,
		"empty":             "",
	} {
		w, _ := doubtful(t)
		finish(w, true)
		s := snapshotText(func(begun uint64) string {
			if strings.Contains(text, "%d") {
				return fmt.Sprintf(text, begun)
			}
			return text
		})
		before := w.at()
		if _, err := w.runner().Read(context.Background(), Request{Snapshot: s}); !errors.Is(err, ErrSnapshot) || w.at() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The file is taken after the offset was told; one of an earlier moment is waited out, one without a moment refused.
func TestSnapshotFile(t *testing.T) {
	w, _ := doubtful(t)
	finish(w, true)
	path := filepath.Join(t.TempDir(), "snapshot")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(w.dump(1))
	f := &SnapshotFile{Path: path}
	f.Ready = func(begun uint64) {
		go func() {
			if err := os.WriteFile(path+".new", []byte(w.dump(begun)), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Error(err)
			}
		}()
	}
	w.read(w.runner(), Request{Snapshot: f})
	f.Ready = nil
	write(`{"object_key":"k","media":["cpu"]}`)
	if _, err := w.runner().Read(context.Background(), Request{Snapshot: f}); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
	write(w.dump(1 << 40))
	if _, err := w.runner().Read(context.Background(), Request{Snapshot: f}); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
	os.Remove(path)
	f.Patience = 1
	if _, err := w.runner().Read(context.Background(), Request{Snapshot: f}); !errors.Is(err, ErrSnapshot) {
		t.Error(err)
	}
}
