package service_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query/service"
)

// TestFrontHeals: who serves a directory at rest computes its damaged index anew, on disk, when a question met the damage, and leaves the journal.
func TestFrontHeals(t *testing.T) {
	w := newWorld(t, 6)
	defer w.close()
	for range 20 {
		w.some()
	}
	w.must(errors.Join(w.x.CatchUp(t.Context(), nil), w.x.Flush()))
	w.awaitHead()
	fs, last := w.left(), w.j.Durable()
	ask := func(f *service.Front) string {
		r := httptest.NewRecorder()
		f.ServeHTTP(r, httptest.NewRequest(http.MethodGet, fmt.Sprintf("http://kvjournal/v1/objects?at=offset:%d", last), nil))
		return fmt.Sprint(r.Code, " ", r.Body.String())
	}
	whole := service.NewFront(dataDir, service.Options{FS: fs})
	want := ageless(ask(whole))
	w.must(whole.Close())
	if !strings.HasPrefix(want, "200 ") || strings.Contains(want, `{"error"`) {
		t.Fatal(want)
	}
	flipIndex(t, fs)
	before := journalBytes(t, fs)
	for again := range 2 {
		front := service.NewFront(dataDir, service.Options{FS: fs})
		got := ask(front)
		if damaged := strings.Contains(got, "the index is damaged"); damaged != (again == 0) {
			t.Errorf("%d: damaged: %v: %.300s", again, damaged, got)
		} else if damaged {
			got = ask(front)
		}
		if ageless(got) != want {
			t.Errorf("%d: %.300s\nwant\n%.300s", again, got, want)
		}
		w.must(front.Close())
	}
	if journalBytes(t, fs) != before {
		t.Error("a question changed the journal")
	}
}
