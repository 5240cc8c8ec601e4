package main

import (
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/index/reconcile"
)

func TestReadingStep(t *testing.T) {
	long := strings.Repeat("the reading was overtaken ", 10)
	for _, c := range []struct {
		p    reconcile.Progress
		want string
	}{
		{reconcile.Progress{Step: reconcile.StepTurn, Reason: "it began 12s ago (audit)", Seconds: 12}, "waiting for another reading: it began 12s ago (audit)"},
		{reconcile.Progress{Step: reconcile.StepListing, Done: 12_000, Seconds: 3}, "reading the list: 12,000 keys (3 s)"},
		{reconcile.Progress{Step: reconcile.StepListing}, "reading the list: 0 keys"},
		{reconcile.Progress{Step: reconcile.StepAsking, Done: 1000, Total: 5000}, "asking for the media of 5,000 keys: 1,000"},
		{reconcile.Progress{Step: reconcile.StepWriting}, "writing"},
	} {
		if got := readingStep(&c.p); got != c.want {
			t.Errorf("%+v: %q, want %q", c.p, got, c.want)
		}
	}
	got := readingStep(&reconcile.Progress{Step: reconcile.StepAgain, Reason: long, Seconds: 7})
	if n := len([]rune(got)); n > readingWidth || !strings.HasPrefix(got, "again: the reading") || !strings.HasSuffix(got, "(7 s)") {
		t.Errorf("%d wide: %q", n, got)
	}
}
