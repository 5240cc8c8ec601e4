package datadir

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/kvjournal/kvjournal/journal/testkit"
)

// patience is how long a test waits for what must happen: a busy machine may hold it up.
const patience = time.Minute

func claim(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Claim(t.Context(), vfs.Default, dir, "kvjournal test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func share(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Share(t.Context(), vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func TestClaimIsExclusive(t *testing.T) {
	dir := t.TempDir()
	if who, claimed := Claimed(vfs.Default, dir); claimed {
		t.Errorf("claimed by %q before any claim", who)
	}
	first := claim(t, dir)
	_, err := Claim(t.Context(), vfs.Default, dir, "another")
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "kvjournal test, process ") {
		t.Errorf("second claim: %v", err)
	}
	if who, claimed := Claimed(vfs.Default, dir); !claimed || !strings.HasPrefix(who, "kvjournal test, process ") {
		t.Errorf("Claimed: %q, %v", who, claimed)
	}
	first.Release()
	first.Release()
	if who, claimed := Claimed(vfs.Default, dir); claimed {
		t.Errorf("claimed by %q behind Release", who)
	}
	claim(t, dir)
}

// TestClaimsRace: of many at once one wins, and its successor only behind it.
func TestClaimsRace(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	holders, won := 0, 0
	for range 8 {
		wg.Go(func() {
			l, err := Claim(t.Context(), vfs.Default, dir, "one of many")
			if err != nil {
				if !errors.Is(err, ErrLocked) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			holders++
			won++
			if holders > 1 {
				t.Error("two writers at once")
			}
			mu.Unlock()
			mu.Lock()
			holders--
			mu.Unlock()
			l.Release()
		})
	}
	wg.Wait()
	if won == 0 {
		t.Error("nobody won")
	}
}

func TestReadersCoexist(t *testing.T) {
	dir := t.TempDir()
	a, b := share(t, dir), share(t, dir)
	writer := claim(t, dir) // readers never stop a writer
	share(t, dir).Release()
	if l, err := Alone(vfs.Default, dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Alone beside readers and a writer: %v, %v", l, err)
	}
	writer.Release()
	if l, err := Alone(vfs.Default, dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Alone beside readers: %v, %v", l, err)
	}
	a.Release()
	if l, err := Alone(vfs.Default, dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Alone beside one reader: %v, %v", l, err)
	}
	b.Release()
	writer = claim(t, dir)
	if l, err := Alone(vfs.Default, dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Alone beside a writer: %v, %v", l, err)
	}
	writer.Release()
	l, err := Alone(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	if l2, err := Alone(vfs.Default, dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Alone twice: %v, %v", l2, err)
	}
	l.Release()
	share(t, dir)
}

// TestWriterWaitsForAlone: and is seen by the holder meanwhile, who gives way.
func TestWriterWaitsForAlone(t *testing.T) {
	dir := t.TempDir()
	alone, err := Alone(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 2)
	go func() {
		l, err := Claim(t.Context(), vfs.Default, dir, "the writer")
		got <- err
		l.Release()
	}()
	testkit.Eventually(t, "the holder sees the writer", func() bool {
		who, claimed := Claimed(vfs.Default, dir)
		return claimed && strings.HasPrefix(who, "the writer")
	})
	select {
	case err := <-got:
		t.Fatalf("the writer got in beside the holder, %v", err)
	default:
	}
	go func() {
		l, err := Share(t.Context(), vfs.Default, dir)
		got <- err
		l.Release()
	}()
	alone.Release()
	for range 2 {
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("waits for ever")
		}
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	alone, err := Alone(vfs.Default, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Share(ctx, vfs.Default, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("Share: %v", err)
	}
	if _, err := Claim(ctx, vfs.Default, dir, "w"); !errors.Is(err, context.Canceled) {
		t.Errorf("Claim: %v", err)
	}
	if _, claimed := Claimed(vfs.Default, dir); claimed {
		t.Error("a claim that gave up is still there")
	}
}

// TestLookingNeverDisturbsAClaim: however many look at the claim, a writer gets it.
func TestLookingNeverDisturbsAClaim(t *testing.T) {
	dir := t.TempDir()
	claim(t, dir).Release() // the file exists
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					Claimed(vfs.Default, dir)
				}
			}
		})
	}
	for i := range 30 {
		l, err := Claim(t.Context(), vfs.Default, dir, "w")
		if err != nil {
			t.Errorf("claim %d: %v", i, err)
			break
		}
		if _, claimed := Claimed(vfs.Default, dir); !claimed {
			t.Errorf("claim %d is not seen", i)
		}
		l.Release()
	}
	close(stop)
	wg.Wait()
}

// TestClaimOutlastsLookers: whoever only looks at the claim, however long, holds a writer up, and does not turn it away.
func TestClaimOutlastsLookers(t *testing.T) {
	dir := t.TempDir()
	claim(t, dir).Release() // the file exists
	looker, err := flock(filepath.Join(dir, claimFile), unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		l, err := Claim(t.Context(), vfs.Default, dir, "w")
		l.Release()
		got <- err
	}()
	select {
	case err := <-got:
		t.Errorf("beside who looks: %v", err)
	case <-time.After(2 * claimPatience): // a writer would have been met by then
	}
	looker.Close()
	if err := <-got; err != nil {
		t.Errorf("behind who looked: %v", err)
	}
}

// TestLocksOfOtherFilesystems: a directory in memory has no other processes.
func TestLocksOfOtherFilesystems(t *testing.T) {
	mem := vfs.NewMem()
	for range 2 {
		if _, err := Claim(t.Context(), mem, "/x", "w"); err != nil {
			t.Error(err)
		}
		if _, err := Alone(mem, "/x"); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	claim(t, dir)
	for name, fs := range map[string]vfs.FS{"unlocked": Unlocked(vfs.Default)} {
		if _, claimed := Claimed(fs, dir); !claimed {
			t.Errorf("%s: a wrapped filesystem is still the operating system's", name)
		}
	}
	if _, claimed := Claimed(Overlay(vfs.Default), dir); claimed {
		t.Error("an overlay is no place for locks")
	}
	var none *Lock
	none.Release()
}
