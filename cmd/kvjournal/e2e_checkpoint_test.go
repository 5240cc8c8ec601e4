package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query"
)

// checkpoint is one line of a truth file: what the store held at a quiet moment.
type checkpoint struct {
	UnixMS int64
	media  map[object][]string
}

// readTruth reads mooncaketest's truth lines. A last line that was cut by a SIGKILL is left out.
func readTruth(t *testing.T, r io.Reader) []checkpoint {
	t.Helper()
	var out []checkpoint
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			UnixMS int64 `json:"unix_ms"`
			State  [][3]string
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatalf("truth: %v", err)
		}
		p := checkpoint{c.UnixMS, make(map[object][]string, len(c.State))}
		for _, row := range c.State {
			tenant, err1 := base64.StdEncoding.DecodeString(row[0])
			key, err2 := base64.StdEncoding.DecodeString(row[1])
			if err1 != nil || err2 != nil {
				t.Fatalf("truth row %q", row)
			}
			p.media[object{string(tenant), string(key)}] = strings.Split(row[2], ",")
		}
		out = append(out, p)
	}
}

// universe is every object that was ever seen, by the recorder or by the store, and some that were not.
func universe(seen []object, truth []checkpoint) []object {
	all := map[object]bool{{"default", "never-seen"}: true, {"tenant-1", "never-seen"}: true, {"no-such-tenant", "never-seen"}: true}
	for _, o := range seen {
		all[o] = true
	}
	for _, c := range truth {
		for o := range c.media {
			all[o] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b object) int { return strings.Compare(a.tenant+"\x00"+a.key, b.tenant+"\x00"+b.key) })
}

// tally counts answers for media that an event was ever about by the moment, and how many of them were confirmed.
type tally struct{ evident, confirmed int }

func (a *tally) add(b tally) { a.evident, a.confirmed = a.evident+b.evident, a.confirmed+b.confirmed }

// judge compares answers with the truth: a confirmed one must not be wrong.
func (c *checkpoint) judge(t *testing.T, what string, objects []object, answers []query.Answer) tally {
	t.Helper()
	var n tally
	wrong := 0
	report := func(a *query.Answer, o object) {
		if wrong++; wrong <= 3 {
			line, _ := json.Marshal(a)
			t.Errorf("%s: WRONG and confirmed: the truth is %q, the answer %s", what, c.media[o], line)
		}
	}
	for i, o := range objects {
		a := &answers[i]
		for name, m := range a.Media {
			if m.Evidence != nil {
				n.evident++
			}
			if m.Certainty != query.Confirmed {
				if m.Doubt == nil {
					t.Errorf("%s: %q is uncertain without a doubt", what, o.key)
				}
				continue
			}
			n.confirmed++
			if m.Evidence == nil || m.Doubt != nil {
				t.Errorf("%s: %q on %s is confirmed with evidence %v, doubt %v", what, o.key, name, m.Evidence, m.Doubt)
			}
			if slices.Contains(c.media[o], name) != (m.State == query.Present) {
				report(a, o)
			}
		}
		if a.Certainty == query.Confirmed && a.Present != (len(c.media[o]) > 0) {
			report(a, o)
		}
		if a.Media["cpu"].State == "" || a.Media["disk"].State == "" {
			t.Errorf("%s: the answer for %q lacks cpu or disk", what, o.key)
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d wrong confirmed answers", what, wrong)
	}
	return n
}

// judgeAll asks for every object at every checkpoint.
func judgeAll(t *testing.T, dir string, truth []checkpoint, objects []object) []tally {
	t.Helper()
	out := make([]tally, len(truth))
	for i := range truth {
		at := strconv.FormatInt(truth[i].UnixMS, 10)
		out[i] = truth[i].judge(t, "checkpoint "+strconv.Itoa(i)+" at "+at, objects, lookup(t, dir, at, objects))
		t.Logf("checkpoint %d: %d live, %d of %d evident media confirmed", i, len(truth[i].media), out[i].confirmed, out[i].evident)
	}
	return out
}
