package oracle

import "testing"

// hole is a stream of which the rules as written confirm what is not so. Each names the truth.
func hole(t *testing.T, text, question, asWritten string, repairs Repairs, repaired string) {
	t.Helper()
	for _, c := range []struct {
		repairs Repairs
		want    string
	}{{Repairs{}, asWritten}, {repairs, repaired}} {
		o := NewRepaired(c.repairs)
		for _, r := range script(t, text) {
			o.Apply(r)
		}
		if got := ask(t, o, question); got != c.want {
			t.Errorf("%+v: %s = %s, want %s", c.repairs, question, got, c.want)
		}
	}
}

// TestLostSurvivor: a remove-all removes x and then y and z. Behind the removal of x a client stores x again. That event is
// lost, by the queue of the publisher: seq 3. The truth at the end is that x is present.
func TestLostSurvivor(t *testing.T) {
	hole(t, "1@10 1+x 2+y 3+z | 2@20 4-x | 4@30 5-y | 5@40 6-z 7!", "now x", "absent", Repairs{Clears: true}, "absent ?")
}

// TestUndatedBehindDamage: the message at 20 ms is damaged, the one at 30 ms says that it is 2.5 h ahead. As written
// its time is that of the first, 10 ms. The truth at 15 ms is that x is absent: it was stored at 30.
func TestUndatedBehindDamage(t *testing.T) {
	hole(t, "1@10 1-x | 2@20 bad | 3@9000000 3+x | 4@40 4+y", "t15 x", "present", Repairs{Undated: true}, "present ?")
}

// TestUndatedBehindLoss: the same with seq 2 lost; 3 stands in the shadow, 4 does not.
func TestUndatedBehindLoss(t *testing.T) {
	hole(t, "1@10 1-x | 3@9000000 3+y | 4@9000000 4+x | 5@40 5+y", "t15 x", "present", Repairs{Undated: true}, "present ?")
}

// TestUndated: nothing is lost, but the batch that R8 dates at 10 ms was sent at 30. The truth at 15 ms is that x is absent.
// What it did not touch stays confirmed.
func TestUndated(t *testing.T) {
	text := "1@10 1-x 2+y | 2@9000000 3+x | 3@40 4+z"
	hole(t, text, "t15 x", "present", Repairs{Undated: true}, "present ?")
	hole(t, text, "t15 y", "present", Repairs{Undated: true}, "present")
}

// TestUndatedFirst: the first batch of all has no time, and no predecessor. The truth at 5 ms is not known: it was stored
// at any time before 40.
func TestUndatedFirst(t *testing.T) {
	hole(t, "1@9000000 1+x | 2@40 2+y", "t5 x", "present", Repairs{Undated: true}, "present ?")
}

// TestEmptyBehindFull: a full batch ends with the removed half of an upsert of z, and a batch without events follows before
// the stored half. R8 as written ends its doubt there. No real publisher sends empty batches; the truth is that z is
// present all the time.
func TestEmptyBehindFull(t *testing.T) {
	hole(t, full(1, 10, 1)+" | 2@20 | 3@30 65+z", "o2 z", "absent", Repairs{}, "absent")
}
