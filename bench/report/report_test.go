package report

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		v             float64
		number, brief string
	}{
		{0.042, "0.04", "0.04"}, {3.14159, "3.14", "3.14"}, {42.36, "42.4", "42.4"}, {999.4, "999", "999"}, {1234.5, "1,235", "1,235"},
		{612_345, "612,345", "612 k"}, {45_600, "45,600", "45.6 k"}, {1_234_567, "1,234,567", "1.23 M"}, {math.NaN(), "-", "-"},
	} {
		if got := Number(c.v); got != c.number {
			t.Errorf("Number(%v) is %s, expected %s", c.v, got, c.number)
		}
		if got := Brief(c.v); got != c.brief {
			t.Errorf("Brief(%v) is %s, expected %s", c.v, got, c.brief)
		}
	}
}

// Twice the rate and half the time are both twice as good; where kvjournal loses the ratio is below 1.
func TestTable(t *testing.T) {
	var s Samples
	for _, v := range []float64{110, 90, 100} {
		s.Add(Base, "synced", "append/64", "rate", "events/s", v)
		s.Add("other", "not synced", "append/64", "rate", "events/s", v/2)
		s.Add(Base, "synced", "ack/64", "p50", "us", v)
		s.Add("other", "not synced", "ack/64", "p50", "us", v/4)
	}
	var out bytes.Buffer
	if err := Table(&out, s.Results()); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(strings.Fields(out.String()), " ")
	want := "kvjournal synced other not synced 64 events a message kvjournal other synced not synced " +
		"append rate, events/s 100 ±10% 50.0 ±10% 2.00x ack p50, us 100 ±10% 25.0 ±10% 0.25x"
	if got != want {
		t.Errorf("the table is\n%s\nexpected\n%s", got, want)
	}
}
