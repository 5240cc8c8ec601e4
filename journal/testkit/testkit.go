// Package testkit is what the tests of several packages share and no product code uses: waiting for conditions, seeds that are told, files of
// a vfs.FS, output that is looked at while it is written. faultfs has the filesystems for tests, mooncaketest the publisher.
package testkit

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Patience is how long a test waits for what must happen: far above what is usual, since the machine may have much else to do.
const Patience = time.Minute

// Eventually waits until ok holds, looking again every millisecond. The test fails where it does not within Patience.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	EventuallyIn(t, Patience, what, ok)
}

// EventuallyIn is Eventually with a patience of its own.
func EventuallyIn(t testing.TB, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !ok(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}

// Seed is a new one, that of KVJOURNAL_SEED if that is set. It is told when the test fails.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("KVJOURNAL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("KVJOURNAL_SEED: %v", err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with KVJOURNAL_SEED=%d", seed)
		}
	})
	return seed
}

// RandomSource is random by a Seed.
func RandomSource(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// ReadFile reads all of a file.
func ReadFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Buffer takes output that can be looked at while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// Bytes is a copy of what was written so far.
func (b *Buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

// String is Bytes as text.
func (b *Buffer) String() string { return string(b.Bytes()) }
