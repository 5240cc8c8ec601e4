package httpapi

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// params reads the parameters of a question and keeps what was wrong first.
type params struct {
	values url.Values
	wrong  error
}

// err is what was wrong with what was read so far.
func (p *params) err() error { return p.wrong }

func (p *params) bad(format string, args ...any) error {
	err := &query.UsageError{Message: fmt.Sprintf(format, args...)}
	if p.wrong == nil {
		p.wrong = err
	}
	return err
}

func (p *params) text(name string) string { return p.values.Get(name) }

// bytes reads NAME, or NAME_base64; nil where there is neither.
func (p *params) bytes(name string) query.Bytes {
	if p.values.Has(name + "_base64") {
		b, err := base64.StdEncoding.DecodeString(p.values.Get(name + "_base64"))
		if err != nil {
			p.bad("%s_base64: %v", name, err)
		}
		return append(query.Bytes{}, b...)
	}
	if !p.values.Has(name) {
		return nil
	}
	return query.Bytes(p.values.Get(name))
}

// when reads a moment; now is the zero of "-5m".
func (p *params) when(name string, now time.Time) query.When {
	w, err := query.ParseWhen(p.values.Get(name), now)
	if err != nil && p.wrong == nil {
		p.wrong = err
	}
	return w
}

// span reads from and to.
func (p *params) span(now time.Time) query.Span {
	s := query.Span{From: p.when("from", now), To: p.when("to", now)}
	if err := s.Check(now); err != nil && p.wrong == nil {
		p.wrong = err
	}
	return s
}

// where reads source, backend_id and tenant_id.
func (p *params) where() query.Where {
	return query.Where{Source: p.text("source"), Backend: p.bytes("backend_id"), Tenant: p.bytes("tenant_id")}
}

// name reads source, backend_id, tenant_id and object_key.
func (p *params) name() query.Name {
	w := p.where()
	return query.Name{Source: w.Source, Backend: w.Backend, Tenant: w.Tenant, Key: p.bytes("object_key")}
}

// number reads a number from 0 on; absent: otherwise.
func (p *params) number(name string, otherwise uint64) uint64 {
	if !p.values.Has(name) {
		return otherwise
	}
	n, err := strconv.ParseUint(p.values.Get(name), 10, 63)
	if err != nil {
		p.bad("%s %q: it is a number from 0 on", name, p.values.Get(name))
	}
	return n
}

// flag reads true or false; absent: false.
func (p *params) flag(name string) bool {
	if !p.values.Has(name) {
		return false
	}
	b, err := strconv.ParseBool(p.values.Get(name))
	if err != nil {
		p.bad("%s %q: it is true or false", name, p.values.Get(name))
	}
	return b
}

// choice reads one of several words; absent: the first.
func (p *params) choice(name string, words ...string) string {
	if !p.values.Has(name) {
		return words[0]
	}
	s := p.values.Get(name)
	for _, w := range words {
		if s == w {
			return s
		}
	}
	p.bad("%s %q: use %s", name, s, alternatives(words))
	return words[0]
}

// alternatives writes words as a person does: "a, b or c". An empty one is that where nothing is given.
func alternatives(words []string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// duration reads a duration like 5m; absent: 0.
func (p *params) duration(name string) time.Duration {
	if !p.values.Has(name) {
		return 0
	}
	d, err := time.ParseDuration(p.values.Get(name))
	if err != nil || d <= 0 {
		p.bad("%s %q: a duration like 30s, 5m or 1h", name, p.values.Get(name))
	}
	return d
}
