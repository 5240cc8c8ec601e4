package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/index"
)

// objectCommand is a command about an object.
func objectCommand(sub string, n *Name) string {
	s := sourceCommand(sub, n.Source)
	if n.Backend != nil {
		s += " --backend " + ShellWord(string(n.Backend))
	}
	s += " --tenant " + ShellWord(string(n.Tenant))
	if key := string(n.Key); plainWord(key) {
		return s + " -- " + key
	}
	return s + " --base64 -- " + *n.Key.base64()
}

func sourceCommand(sub, source string) string {
	s := "kvjournal " + sub
	if source != "" {
		s += " --source " + ShellWord(source)
	}
	return s
}

// plainWord reports whether every shell reads s as it stands.
func plainWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@%+=,", r))
	}) < 0
}

// Plural is the word for n of something.
func Plural(n uint64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// ShellWord writes s so that a shell reads it as one word; bytes that cannot be shown as bash reads them.
func ShellWord(s string) string {
	if plainWord(s) {
		return s
	}
	hostile := false
	for _, r := range s {
		hostile = hostile || !strconv.IsPrint(r) || r == '\ufffd'
	}
	if !hostile {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '\'' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// happened names an event.
func happened(e *index.Event) string {
	switch {
	case e.Reading && e.Stored:
		return "a reading of the master found it on " + e.Medium
	case e.Reading:
		return "a reading of the master did not find it on " + e.Medium
	case e.Stored:
		return "stored on " + e.Medium
	}
	return "removed from " + e.Medium
}

// spotOf says when and where an event, or a reading of the master, was.
func spotOf(e *index.Evidence) string {
	if e.Reading {
		return fmt.Sprintf("at %s on our clock (offset %d)", clockText(e.Received), e.Position.Offset)
	}
	s := fmt.Sprintf("offset %d, seq %d/%d", e.Position.Offset, e.Epoch, e.Seq)
	if !e.HasTime {
		return "at " + s
	}
	return "at " + clockText(e.Time) + " (" + s + ")"
}

func clockText(ms int64) string {
	return time.UnixMilli(showable(ms)).UTC().Format("2006-01-02 15:04:05.000")
}

// whenText is a moment as it is asked for, "" for the default.
func whenText(w When) string {
	switch w.Kind {
	case Now:
		return "now"
	case AtTime:
		return msTime(w.Ms).String()
	case AtOffset:
		return fmt.Sprintf("offset:%d", w.Offset)
	case AtSeq:
		return fmt.Sprintf("seq:%d/%d", w.Epoch, w.Seq)
	}
	return ""
}

func and(s []string) string {
	if n := len(s); n > 1 {
		return strings.Join(s[:n-1], ", ") + " and " + s[n-1]
	}
	return strings.Join(s, "")
}

// lower makes a sentence's first word one in the middle.
func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }
