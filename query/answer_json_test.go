package query

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// randomAnswer is any answer there can be, and some that there cannot.
func randomAnswer(r *rand.Rand) *Answer {
	flip := func() bool { return r.IntN(2) == 0 }
	at := func() *Time {
		if flip() {
			return nil
		}
		return msTime(r.Int64N(4e12) - 1e12)
	}
	bytes := func() Bytes {
		if r.IntN(4) == 0 {
			return nil
		}
		b := make(Bytes, r.IntN(6))
		for i := range b {
			b[i] = []byte{'k', '"', '\\', '\n', 0xff, 0xc3, 0xa9, '<'}[r.IntN(8)]
		}
		return b
	}
	a := &Answer{
		Name:    Name{Source: []string{"", "s", "ü\"<&>"}[r.IntN(3)], Backend: bytes(), Tenant: bytes(), Key: bytes()},
		Present: flip(), Certainty: Confirmed, Media: map[string]MediumOut{}, Silent: flip(),
		AsOf: AsOf{Offset: r.Uint64N(9), Time: at(), Received: at(), Live: flip()},
	}
	if age := r.Int64() - r.Int64(); flip() {
		a.AsOf.AgeMs = &age
	}
	for range r.IntN(12) {
		m := MediumOut{State: Present, Certainty: Uncertain}
		if flip() {
			m.Evidence = &EvidenceOut{Offset: r.Uint64(), Epoch: 1, Seq: r.Uint64(), Time: at(), Received: at(), Cause: "event"}
			if id := r.Uint64(); flip() {
				m.Evidence.EventID = &id
			}
		}
		if flip() {
			m.Doubt = &Doubt{Cause: DoubtNow, Offset: r.Uint64N(3), Time: at()}
		}
		a.Media[[]string{"cpu", "disk", "", "a\"b", "ssd", "nvme", "x", "y", "z"}[r.IntN(9)]] = m
	}
	return a
}

// An answer appends what it marshals.
func TestAnswerAppendJSON(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		a := randomAnswer(r)
		want, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		got := a.AppendJSON([]byte("x"))[1:]
		var one, other any
		if err := errors.Join(json.Unmarshal(want, &one), json.Unmarshal(got, &other)); err != nil || !reflect.DeepEqual(one, other) {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, got, want)
		}
	}
}
