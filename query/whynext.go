package query

import (
	"fmt"
	"slices"
)

// wrongIf tells what would have to be true for the answer to be wrong, or what else may be so.
func (t *whyTeller) wrongIf() {
	add := func(format string, args ...any) {
		if s := fmt.Sprintf(format, args...); !slices.Contains(t.out.WrongIf, s) {
			t.out.WrongIf = append(t.out.WrongIf, s)
		}
	}
	for _, c := range t.causes() {
		text := t.text(c.cause, t.gapOf(&c))
		for _, name := range c.media {
			if slices.Contains(c.present, name) {
				if text.present != "" {
					add("%s: it may be absent, if %s; %s.", name, text.present, t.elseSo(Present))
				}
			} else if text.absent != "" {
				add("%s: it may be present, if %s; %s.", name, text.absent, t.elseSo(Absent))
			}
		}
	}
	for _, m := range t.f.answer.Media {
		if m.Certainty == Confirmed {
			add("What is confirmed is what the publisher had announced by the moment. The store itself may differ: a change that was still in the publisher's queue comes later in the stream, and a master that changes things without an event announces nothing.")
		}
	}
}

// next tells what to look at or to do.
func (t *whyTeller) next() {
	f := t.f
	add := func(text, command string) { t.out.Next = append(t.out.Next, WhyNext{text, command}) }
	if !f.seen {
		for i := range f.elsewhere {
			add("The key was seen in another scope.", objectCommand("history", &f.elsewhere[i]))
		}
		if len(f.elsewhere) == 0 {
			add("Look at the spelling of the key (any bytes go in with --base64) and at --tenant. An event that was lost may have named it.", sourceCommand("gaps", f.name.Source))
		}
	} else {
		around := ""
		if at := f.answer.AsOf.Offset; at != 0 {
			around = fmt.Sprintf(" --to offset:%d", at)
		}
		add("All that touched it up to the moment.", objectCommand("history"+around, &f.name))
		if f.behindMoment != 0 && (f.next != nil || f.nextClear != nil || f.nextMark != nil) {
			add("What touched it after the moment.", objectCommand(fmt.Sprintf("history --from offset:%d", f.behindMoment), &f.name))
		}
	}
	t.nextReadings(add)
	for _, c := range t.causes() {
		if f.nextGap != nil && c.cause == f.nextGap.Cause && !c.marked {
			add("The loss itself.", sourceCommand(fmt.Sprintf("gaps --from offset:%d --to offset:%[1]d", f.nextGap.FirstOffsetAfter), f.name.Source))
		}
		if c.marked {
			end := f.markAt.Offset
			if f.mark.ExtendsTo != nil {
				end = f.mark.ExtendsTo.Offset
			}
			add("The loss itself.", sourceCommand(fmt.Sprintf("gaps --from offset:%d --to offset:%d", f.markAt.Offset, end), f.name.Source))
			if f.seen && f.first.Position.Offset <= f.before {
				add("What was known directly before it.", objectCommand(fmt.Sprintf("lookup --at offset:%d", f.before), &f.name))
			}
		}
		if do := t.text(c.cause, t.gapOf(&c)).do; do != "" {
			add(do, "")
		}
		if c.cause == DoubtBehindLast || c.cause == DoubtNow {
			add("Where the source stands.", "kvjournal stats")
		}
	}
}
