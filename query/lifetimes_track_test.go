package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/index"
)

// trackScript runs a tracker over a script: "+cpu" is stored, "-cpu" removed, each with the event_id behind the one before; "." is
// an event of another object, "clear" a clear of the scope, "|" a mark, and "noid" makes what follows come without event_ids.
func trackScript(script string) string {
	var clears []index.Evidence
	var marks []index.Position
	type event struct {
		medium string
		index.Evidence
	}
	var events []event
	offset, id, hasID := uint64(1), uint64(0), true
	for _, word := range strings.Fields(script) {
		id++
		offset++
		e := index.Evidence{Position: index.Position{Offset: offset, Event: 1}, HasID: hasID, ID: id}
		if !hasID {
			e.ID, e.Position = 0, index.Position{Offset: 1000, Event: uint32(offset)}
		}
		switch {
		case word == "|":
			id--
			marks = append(marks, e.Position)
		case word == "noid":
			hasID = false
		case word == "clear":
			clears = append(clears, e)
		case word[0] == '+', word[0] == '-':
			e.Stored = word[0] == '+'
			events = append(events, event{word[1:], e})
		}
	}
	var out []string
	t := tracker{
		clear: func(p index.Position) (index.Evidence, bool) {
			for _, c := range clears {
				if p.Before(c.Position) {
					return c, true
				}
			}
			return index.Evidence{}, false
		},
		marked: func(a, b index.Position) bool {
			return slices.ContainsFunc(marks, func(m index.Position) bool { return a.Before(m) && m.Before(b) })
		},
		emit: func(l *lifetime) {
			s := l.medium + " " + [...]string{"open", "copy left", "removed", "upsert", "cleared"}[l.how]
			if l.next != nil {
				s += " again"
			}
			out = append(out, s)
		},
	}
	for i := range events {
		t.event(events[i].medium, &events[i].Evidence, nil)
	}
	t.finish()
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestTracker(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"", ""},
		{"-cpu", ""},
		{"+cpu", "cpu open"},
		{"+cpu +cpu +cpu", "cpu open"},
		{"+cpu -cpu", "cpu removed"},
		{"+cpu -cpu -cpu", "cpu removed"},
		{"+cpu . -cpu", "cpu removed"},
		{"+cpu +disk -cpu", "cpu copy left, disk open"},
		{"+cpu +disk -cpu . -disk", "cpu copy left, disk removed"},
		{"+cpu +disk -cpu -disk", "cpu removed, disk removed"},                // one removal
		{"+cpu +disk +x -cpu -disk", "cpu copy left, disk copy left, x open"}, // x is left
		{"+cpu -cpu +cpu", "cpu open, cpu upsert again"},
		{"+cpu -cpu . +cpu", "cpu open, cpu removed again"},
		{"+cpu -cpu | +cpu", "cpu open, cpu removed again"}, // something may be between
		{"+cpu +disk -cpu +cpu", "cpu open, cpu upsert again, disk open"},
		{"+cpu +disk -cpu -disk +cpu", "cpu open, cpu upsert again, disk upsert"},
		{"+cpu +disk -disk -cpu +cpu +disk", "cpu open, cpu upsert again, disk open, disk upsert again"},
		{"+cpu -cpu +disk", "cpu removed, disk open"},      // no upsert: another medium
		{"+cpu +disk -cpu", "cpu copy left, disk open"},    // an offload
		{"+cpu -disk -cpu +disk", "cpu upsert, disk open"}, // its removal took disk too
		{"+cpu clear", "cpu cleared"},
		{"+cpu clear +cpu", "cpu cleared again, cpu open"},
		{"+cpu +disk . clear . clear", "cpu cleared, disk cleared"},
		{"+cpu -cpu clear +cpu", "cpu open, cpu removed again"},
		{"clear +cpu -cpu clear", "cpu removed"},
		{"noid +cpu -cpu +cpu", "cpu open, cpu upsert again"},
		{"noid +cpu -cpu . +cpu", "cpu open, cpu removed again"},
		{"+cpu -cpu noid +cpu", "cpu open, cpu removed again"},
		{"+a +b +c +d +e +f +g +h +i +j -a -j . -c", "a copy left, b open, c copy left, d open, e open, f open, g open, h open, i open, j copy left"},
	} {
		if got := trackScript(c.script); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}

// Whatever comes, what is counted stays within bounds, nothing gets lost, and the largest keep their lines.
func TestLifetimeTableBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var parts [2]lifetimeTable
	want := map[string]uint64{}
	total := uint64(0)
	for i := range 200_000 {
		name, medium := fmt.Sprintf("group %d", i), []string{"cpu", "disk"}[rng.IntN(2)]
		switch rng.IntN(10) {
		case 0:
			name, medium = fmt.Sprintf("large %d", rng.IntN(5)), "cpu"
			want[name]++
		case 1:
			medium = fmt.Sprintf("medium %d", rng.IntN(500))
		case 2:
			name = strings.Repeat("x", 2000)
		}
		l := parts[i%2].line(medium, []byte(name))
		l.count++
		l.took.add(int64(i))
		total++
	}
	var all lifetimeTable
	for i := range parts {
		all.merge(&parts[i])
	}
	all.top(20)
	sum, measured := uint64(0), uint64(0)
	for medium, m := range all.media {
		if len(m.named) > 20 {
			t.Errorf("%d lines on %s", len(m.named), medium)
		}
		for _, c := range m.named {
			sum, measured = sum+c.count, measured+c.took.n
		}
		if m.others != nil {
			sum, measured = sum+m.others.count, measured+m.others.took.n
		}
	}
	if sum != total || measured != total || len(all.media) > countedMedia+3 {
		t.Errorf("%d counted, %d measured of %d, on %d media", sum, measured, total, len(all.media))
	}
	for name, n := range want {
		if c := all.media["cpu"].named[name]; c == nil || c.count != n {
			t.Errorf("%s: %+v, want %d", name, c, n)
		}
	}
}
