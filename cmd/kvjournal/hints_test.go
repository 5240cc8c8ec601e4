package main

import (
	"strings"
	"testing"
)

func TestUnixSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1796057118": true, "1000000000": true, "9999999999": true,
		"999999999": false, "10000000000": false, "1796057118000": false, "0": false, "-5m": false, "offset:1796057118": false, "": false,
	} {
		if _, looks := unixSeconds(text); looks != want {
			t.Errorf("%q: %v", text, looks)
		}
	}
}

// What a newcomer gets wrong is told, with what to do.
func TestHints(t *testing.T) {
	t.Parallel()
	dir := smallDir(t)
	for _, c := range []struct {
		args []string
		say  []string
	}{
		{[]string{"gaps", "--from", "now", "--to", "-5m"}, []string{"--from lies behind --to", "it is now", "exchange them"}},
		{[]string{"log", "--from", "offset:4", "--to", "offset:2"}, []string{"offset:4", "offset:2", "exchange them"}},
		{[]string{"activity", "--from", "-5m", "--to", "-10m"}, []string{"exchange them"}},
		{[]string{"objects", "--certainty", "unsure"}, []string{`certainty "unsure": use confirmed or uncertain`}},
		{[]string{"objects", "--state", "gone"}, []string{`state "gone": use present, absent or any`}},
		{[]string{"gaps", "--form", "-5m"}, []string{"--form", "the nearest is --from"}},
		{[]string{"gap"}, []string{`unknown command "gap"`, "the nearest is gaps"}},
		{[]string{"lokup", "k"}, []string{`unknown command "lokup"`, "the nearest is lookup"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			kvjournal(t, append(c.args, "--dir", dir)...).told(t, 2, c.say...)
		})
	}
	cut := "7b3e52f4…_0_k"
	for _, c := range []struct {
		args   []string
		stdout []string
		stderr string
	}{
		{[]string{"gaps", "--from", "now"}, []string{"Nothing was recorded there"}, ""},
		{[]string{"gaps", "--summary", "--to", "2001-01-01 00:00:00.000"}, []string{"Nothing was recorded there"}, ""},
		{[]string{"gaps", "--to", "offset:3"}, []string{"No loss was seen."}, ""},
		{[]string{"lookup", "k", "--at", "1796057118"}, []string{"nothing recorded by then"}, "write 1796057118000 for 2026-11-30T"},
		{[]string{"lookup", "k", "--tenant", "other"}, []string{"seen elsewhere", "--source small --backend", "--tenant default"}, ""},
		{[]string{"lookup", cut}, []string{"--output json prints it whole"}, ""},
		{[]string{"history", cut}, []string{"--output json prints it whole"}, ""},
		{[]string{"why", cut}, []string{"--output json prints it whole"}, ""},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := kvjournal(t, append(c.args, "--dir", dir)...)
			r.answered(t)
			stdout := strings.Join(strings.Fields(r.stdout), " ") // as wide as it may be
			for _, s := range c.stdout {
				if !strings.Contains(stdout, s) {
					t.Errorf("stdout does not say %q: %q", s, r.stdout)
				}
			}
			if c.stderr == "" && r.stderr != "" || !strings.Contains(r.stderr, c.stderr) {
				t.Errorf("stderr %q, want %q", r.stderr, c.stderr)
			}
		})
	}
	t.Run("no hint where there is an answer, and none in JSON", func(t *testing.T) {
		for _, args := range []string{"lookup k", "lookup nothing", "lookup k --tenant other --output json", "lookup k both --tenant other"} {
			r := kvjournal(t, append(strings.Fields(args), "--dir", dir)...)
			if r.answered(t); strings.Contains(r.stdout, "elsewhere") || r.stderr != "" {
				t.Errorf("%s: stdout %q, stderr %q", args, r.stdout, r.stderr)
			}
		}
	})
}
