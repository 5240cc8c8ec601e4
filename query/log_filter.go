package query

import (
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/journal"
	"github.com/kvjournal/kvjournal/journal/event"
)

// The types of log lines that are no events.
const (
	LogGap       = "gap"
	LogDamaged   = "damaged"
	LogDuplicate = "duplicate"
	LogEmpty     = "empty"
	LogMessage   = "message"
	logEvents    = "event"
	logFacts     = "fact"
)

// LogTypes lists the types of lines: the events, then the facts.
func LogTypes() []string { return slices.Clone(logTypes) }

var logTypes = append([]string{event.Stored.String(), event.Removed.String(), event.Cleared.String(), LogGap, LogDamaged, LogDuplicate, LogEmpty},
	factKinds()...)

// factKinds names the kinds of records that are no messages.
func factKinds() []string {
	var names []string
	for k := journal.Message + 1; !strings.HasPrefix(k.String(), "kind_"); k++ {
		names = append(names, k.String())
	}
	return names
}

// typeSet is a set of logTypes, by their places.
type typeSet uint32

const (
	eventTypes typeSet = 1<<3 - 1
	allTypes   typeSet = 1<<32 - 1
)

func (s typeSet) has(name string) bool {
	i := slices.Index(logTypes, name)
	return i >= 0 && s&(1<<i) != 0
}

func (s typeSet) event(t event.Type) bool { return s&(1<<(t-event.Stored)) != 0 }

// typesOf reads the names of types; none: otherwise.
func typesOf(names []string, otherwise typeSet) (typeSet, error) {
	if len(names) == 0 {
		return otherwise, nil
	}
	var s typeSet
	for _, n := range names {
		i := slices.Index(logTypes, n)
		switch {
		case n == logEvents:
			s |= eventTypes
		case n == logFacts:
			s |= allTypes &^ eventTypes
		case i >= 0:
			s |= 1 << i
		default:
			return 0, usagef("type %q: use %s, or event or fact for all of their kind", n, strings.Join(logTypes, ", "))
		}
	}
	return s, nil
}

// eventFilter says which events are wanted.
type eventFilter struct {
	types                        typeSet
	backend, tenant, key, prefix Bytes
	medium                       string
	objects                      bool // chosen by more than their type
}

func newFilter(o *LogOptions) (eventFilter, error) {
	w := eventFilter{backend: o.Backend, tenant: o.Tenant, key: o.Key, prefix: o.Prefix, medium: o.Medium}
	w.objects = o.Backend != nil || o.Tenant != nil || o.Key != nil || o.Prefix != nil || o.Medium != ""
	otherwise := allTypes
	if w.objects {
		otherwise = eventTypes
	}
	var err error
	w.types, err = typesOf(o.Types, otherwise)
	return w, err
}

func (w *eventFilter) wants(ev *event.Event) bool {
	if !w.types.event(ev.Type) {
		return false
	}
	if !w.objects {
		return true
	}
	if w.backend != nil && string(w.backend) != string(ev.Backend) || w.tenant != nil && string(w.tenant) != string(ev.Tenant) {
		return false
	}
	if ev.Type == event.Cleared {
		return true
	}
	return (w.key == nil || string(w.key) == string(ev.Key)) && (w.medium == "" || w.medium == string(ev.Medium)) &&
		(len(ev.Key) >= len(w.prefix) && string(ev.Key[:len(w.prefix)]) == string(w.prefix))
}
