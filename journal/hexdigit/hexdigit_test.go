package hexdigit

import (
	"strings"
	"testing"
)

func TestValue(t *testing.T) {
	for c := range 256 {
		want := byte(None)
		if i := strings.IndexByte("0123456789abcdef", byte(c)); i >= 0 {
			want = byte(i)
		}
		if got := Value(byte(c)); got != want {
			t.Errorf("%q: %d, want %d", byte(c), got, want)
		}
	}
}
