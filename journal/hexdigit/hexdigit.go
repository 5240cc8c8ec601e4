// Package hexdigit tells lower-case hex digits, of which keys are mostly made, from other bytes.
package hexdigit

// None is the value of a byte that is no digit: its high bits tell it from all that are.
const None = 0xff

// Value is the value of a lower-case hex digit, None of any other byte.
func Value(c byte) byte { return values[c] }

var values = func() (t [256]byte) {
	for i := range t {
		t[i] = None
	}
	for i, c := range "0123456789abcdef" {
		t[c] = byte(i)
	}
	return t
}()
