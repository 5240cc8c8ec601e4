package contender

import (
	"errors"
	"testing"

	"github.com/kvjournal/kvjournal/bench/message"
)

// A contender goes on behind what it had: closed and opened again in the middle it has all messages, each once, and what is not there is
// an error.
func TestReopen(t *testing.T) {
	set, err := message.Build("day", 4000, 200, 3)
	if err != nil {
		t.Fatal(err)
	}
	half := len(set.Groups) / 2
	for _, k := range All() {
		t.Run(k.Name, func(t *testing.T) {
			dir := t.TempDir()
			for i, groups := range [][][]message.Message{set.Groups[:half], set.Groups[half:], nil} {
				j, err := k.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, g := range groups {
					if err := j.Append(g); err != nil {
						t.Fatal(err)
					}
				}
				if err := j.Sync(); err != nil {
					t.Fatal(err)
				}
				if i == 2 {
					hasAll(t, k, j, set)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func hasAll(t *testing.T, k Kind, j Journal, set *message.Set) {
	t.Helper()
	last, err := j.Last()
	if err != nil || last != uint64(set.Messages) {
		t.Errorf("the last is %d of %d, %v", last, set.Messages, err)
	}
	n, want := 0, set.Messages
	if !k.KeepsPayload {
		want = set.Events
	}
	if err := j.ReadAll(func(uint64, []byte) error { n++; return nil }); err != nil || n != want {
		t.Errorf("%d of %d came back, %v", n, want, err)
	}
	if _, err := j.Get(uint64(set.Messages) + 1); err == nil || errors.Is(err, ErrNotHere) == k.KeepsPayload {
		t.Errorf("a message that is not there: %v", err)
	}
	stop := errors.New("stop")
	if err := j.ReadAll(func(uint64, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a reader's error was lost: %v", err)
	}
}
