package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// plotBar is how many columns the longest bar has.
const plotBar = 34

// activityPlot draws one row a bucket: the time, the counts, a bar of them, and what was lost.
func activityPlot(out printer) (show func([]byte) error, end func()) {
	var all []query.ActivityBucket
	show = func(line []byte) error {
		var b query.ActivityBucket
		if err := json.Unmarshal(line, &b); err != nil {
			return err
		}
		all = append(all, b)
		return nil
	}
	end = func() {
		if len(all) == 0 {
			out.row(nil, "Nothing was recorded there.")
			return
		}
		p := plot{out: out, width: all[0].End.Sub(all[0].Begin.Time), tenants: map[string]uint64{}, media: map[string]uint64{}, losses: map[string]*loss{}}
		for i := range all {
			p.most = max(p.most, all[i].Events)
		}
		out.row(nil, fmt.Sprintf("Events by the publisher's clock (UTC); a row is %v, a full bar %s events.", p.width, number(p.most)))
		out.row(plotWidths, "TIME", "STORED", "REMOVED", "█ stored ▒ removed · cleared only", "! LOST, IN DOUBT")
		for i := range all {
			p.row(&all[i])
		}
		p.sums()
	}
	return show, end
}

var plotWidths = []int{12, 9, 9, plotBar}

// plot draws and adds up.
type plot struct {
	out     printer
	width   time.Duration
	most    uint64
	day     string
	empty   int // rows without anything, not drawn yet
	sum     query.ActivityBucket
	tenants map[string]uint64
	media   map[string]uint64
	losses  map[string]*loss
}

// loss adds up the losses of one cause.
type loss struct {
	count    uint64
	least    uint64
	most     uint64
	unknown  bool
	from, to uint64
}

// plotEmpty is how many rows in a row without anything are drawn; longer runs are one line.
const plotEmpty = 3

func (p *plot) row(b *query.ActivityBucket) {
	if b.Messages == 0 && b.Events == 0 && len(b.Gaps) == 0 {
		p.empty++
		return
	}
	if p.empty > plotEmpty {
		p.out.row(nil, fmt.Sprintf("   … nothing for %v", time.Duration(p.empty)*p.width))
		p.empty = 0
	}
	for ; p.empty > 0; p.empty-- {
		p.time(b.Begin.Add(-time.Duration(p.empty) * p.width))
		p.out.row(nil, "")
	}
	p.time(b.Begin.Time)
	cells := []string{right(number(b.ByType.Stored), 9), right(number(b.ByType.Removed), 9), p.bar(b)}
	if len(b.Gaps) > 0 {
		cells = append(cells, shorten(lossText(b.Gaps), 100-plotBar-12-9-9-8))
	}
	p.out.row(plotWidths[1:], cells...)
	p.add(b)
}

// time begins a row, and says the day where it is another.
func (p *plot) time(t time.Time) {
	t = t.UTC()
	if day := t.Format("2006-01-02"); day != p.day {
		p.day = day
		p.out.row(nil, "-- "+day)
	}
	layout := "15:04:05"
	if p.width%time.Second != 0 {
		layout = "15:04:05.000"
	}
	fmt.Fprintf(p.out, "%-12s  ", t.Format(layout))
}

// bar draws stored, then removed, in proportion; what happened at all is at least one column.
func (p *plot) bar(b *query.ActivityBucket) string {
	if b.Events == 0 {
		return ""
	}
	part := func(n uint64) int { return int((float64(n)*plotBar + float64(p.most)/2) / float64(p.most)) }
	whole := max(1, part(b.ByType.Stored+b.ByType.Removed))
	stored := min(part(b.ByType.Stored), whole)
	switch {
	case b.ByType.Stored+b.ByType.Removed == 0:
		return "·"
	case b.ByType.Removed > 0 && stored == whole && whole > 1:
		stored--
	case b.ByType.Stored > 0 && stored == 0, b.ByType.Removed == 0:
		stored = max(1, stored)
	}
	return strings.Repeat("█", stored) + strings.Repeat("▒", max(0, whole-stored))
}

// lossText names what was lost in a bucket, and how many events where that is known and all of one cause.
func lossText(gaps []query.ActivityGap) string {
	count := map[string]uint64{}
	var least, most uint64
	known := true
	for _, g := range gaps {
		count[g.Cause] += g.Count
		if g.LostEventsMin == nil || g.LostEventsMax == nil {
			known = false
			continue
		}
		least, most = least+*g.LostEventsMin, most+*g.LostEventsMax
	}
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(count)) {
		part := cause
		if n := count[cause]; n > 1 {
			part = fmt.Sprintf("%s ×%s", cause, number(n))
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	if len(parts) == 1 && known && most > 0 {
		parts[0] += ": " + between(least, most)
	}
	return "! " + strings.Join(parts, ", ")
}

func (p *plot) add(b *query.ActivityBucket) {
	s := &p.sum
	s.Messages, s.Events = s.Messages+b.Messages, s.Events+b.Events
	s.ByType.Stored += b.ByType.Stored
	s.ByType.Removed += b.ByType.Removed
	s.ByType.Cleared += b.ByType.Cleared
	s.OtherTenants, s.OtherMedia = s.OtherTenants+b.OtherTenants, s.OtherMedia+b.OtherMedia
	for m, n := range b.ByMedium {
		p.media[shorten(printable(query.Bytes(m)), 20)] += n
	}
	for _, t := range b.ByTenant {
		name := ""
		if t.Tenant != nil {
			name = shorten(printable(query.Bytes(*t.Tenant)), 30)
		} else if t.TenantBase64 != nil {
			name = shorten(*t.TenantBase64, 23) + " (base64)"
		}
		p.tenants[name] += t.Events
	}
	for _, g := range b.Gaps {
		l := p.losses[g.Cause]
		if l == nil {
			l = &loss{from: g.FirstOffset}
			p.losses[g.Cause] = l
		}
		l.count += g.Count
		l.from, l.to = min(l.from, g.FirstOffset), max(l.to, g.LastOffset)
		if g.LostEventsMin == nil || g.LostEventsMax == nil {
			l.unknown = true
			continue
		}
		l.least, l.most = l.least+*g.LostEventsMin, l.most+*g.LostEventsMax
	}
}

// sums ends the plot.
func (p *plot) sums() {
	s := &p.sum
	p.out.row(nil, fmt.Sprintf("\n%s events in %s messages: %s stored, %s removed, %s cleared", number(s.Events), number(s.Messages),
		number(s.ByType.Stored), number(s.ByType.Removed), number(s.ByType.Cleared)))
	p.shares("media", p.media, s.OtherMedia)
	p.shares("tenants", p.tenants, s.OtherTenants)
	for _, cause := range slices.Sorted(maps.Keys(p.losses)) {
		l := p.losses[cause]
		text := "events lost: not known"
		switch {
		case cause == "reconnect":
			text = "nothing missing by the numbers"
		case l.unknown:
		case l.least == l.most:
			text = number(l.least) + " events lost"
		default:
			text = number(l.least) + " to " + number(l.most) + " events lost"
		}
		p.out.row(nil, shorten(fmt.Sprintf("! %s: %s at %s, %s", cause, times(l.count), offsets(l.from, l.to), text), 100))
	}
	if len(p.losses) > 0 {
		p.out.row(nil, "`kvjournal gaps` lists each; `kvjournal gaps --help` says what the causes mean.")
	}
}

// shares lists names by their counts, on lines of 100 columns.
func (p *plot) shares(what string, of map[string]uint64, others uint64) {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	line := what + ":"
	add := func(s string) {
		if columns(line)+columns(s)+1 > tableWidth {
			p.out.row(nil, line)
			line = "  "
		}
		line += " " + s
	}
	for i, n := range names {
		comma := ","
		if i == len(names)-1 && others == 0 {
			comma = ""
		}
		add(n + " " + number(of[n]) + comma)
	}
	if others > 0 {
		add("others " + number(others))
	}
	if len(names) > 0 {
		p.out.row(nil, line)
	}
}

func right(s string, width int) string { return strings.Repeat(" ", max(0, width-len(s))) + s }

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return number(n) + " times"
}

func offsets(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("offset %d", from)
	}
	return fmt.Sprintf("offsets %d to %d", from, to)
}
