package measure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPercentiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct{ p, want float64 }{{50, 50}, {99, 99}, {100, 100}, {0, 1}} {
		if got := Percentile(hundred, c.p); got != c.want {
			t.Errorf("percentile %v is %v, expected %v", c.p, got, c.want)
		}
	}
	if got := Median([]float64{3, 1, 2, 10}); got != 2.5 {
		t.Errorf("median %v", got)
	}
}

// Space that is set aside, or a hole, is no data; reading it does not make it so.
func TestDataBytes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "segment")
	if err := os.WriteFile(path, make([]byte, 64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	n, err := DataBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	if n < 64<<10 || n > 1<<20 {
		t.Errorf("%d bytes of data, 65536 were written", n)
	}
}

func TestCopyCrashed(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	if err := os.MkdirAll(filepath.Join(from, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "sub", "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second over the first
		if err := CopyCrashed(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(to, "sub", "f")); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}
