package service_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/index"
	"github.com/kvjournal/kvjournal/query/service"
)

// TestFullDiskIsTold: a question that finds no room to bring the index up says so once, and a rebuild that has none begins nothing.
func TestFullDiskIsTold(t *testing.T) {
	mem, want := crashed(t)
	var log bytes.Buffer
	a, err := service.OpenAtRest(t.Context(), dataDir, service.Options{FS: full{mem}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	if got := answers(t, &a.Engine); got != want {
		t.Errorf("answers\n%s\nthe writer's\n%s", got, want)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if s := log.String(); strings.Count(s, "in memory") != 1 || !strings.Contains(s, "no room") || !strings.Contains(s, dataDir) {
		t.Errorf("said: %s", s)
	}
	before := index.KnownTo(dataDir, index.Options{FS: mem}).Newest()
	err = service.RebuildAtRest(t.Context(), dataDir, service.Options{FS: full{mem}})
	var room *index.NoRoomError
	if !errors.As(err, &room) || room.Free != 4096 || room.Need <= 4096 {
		t.Errorf("a rebuild: %v", err)
	}
	if now := index.KnownTo(dataDir, index.Options{FS: mem}).Newest(); now != before {
		t.Errorf("the index is at %d, was at %d", now, before)
	}
}
