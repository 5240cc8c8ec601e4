package httpapi

import (
	"encoding/base64"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// params reads the parameters of a question and keeps what was wrong first. It notes which names were asked for: those are the ones that
// there are, so ask for all of them before err.
type params struct {
	values url.Values
	wrong  error
	known  []string // the names asked for, in their order, some of them more than once
}

// err is what is wrong with the parameters: those that nobody asked for, and what was read so far.
func (p *params) err() error {
	if err := checkNames(p.values, p.known); err != nil {
		return err
	}
	return p.wrong
}

func (p *params) bad(format string, args ...any) error {
	err := &query.UsageError{Message: fmt.Sprintf(format, args...)}
	if p.wrong == nil {
		p.wrong = err
	}
	return err
}

// get is a parameter's text, and whether it was given.
func (p *params) get(name string) (text string, given bool) {
	p.known = append(p.known, name)
	v := p.values[name]
	if len(v) == 0 {
		return "", false
	}
	return v[0], true
}

func (p *params) text(name string) string {
	text, _ := p.get(name)
	return text
}

// bytes reads NAME, or NAME_base64, which counts before it; nil where there is neither.
func (p *params) bytes(name string) query.Bytes {
	text, given := p.get(name)
	if text64, given := p.get(name + "_base64"); given {
		b, err := base64.StdEncoding.DecodeString(text64)
		if err != nil {
			p.bad("%s_base64: %v", name, err)
		}
		return append(query.Bytes{}, b...)
	}
	if !given {
		return nil
	}
	return query.Bytes(text)
}

// when reads a moment; now is the zero of "-5m".
func (p *params) when(name string, now time.Time) query.When {
	w, err := query.ParseWhen(p.text(name), now)
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

// name reads source, backend_id, tenant_id and object_key, which must be given.
func (p *params) name() query.Name {
	w := p.where()
	key := p.bytes("object_key")
	if len(key) == 0 {
		p.bad("name the object: object_key=KEY, or object_key_base64 where it is no text")
	}
	return query.Name{Source: w.Source, Backend: w.Backend, Tenant: w.Tenant, Key: key}
}

// number reads a number from 0 on; absent: otherwise.
func (p *params) number(name string, otherwise uint64) uint64 {
	text, given := p.get(name)
	if !given {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		p.bad("%s %.40q: it is a number from 0 to %d", name, text, math.MaxInt64)
	}
	return n
}

// flag reads true or false; absent: false.
func (p *params) flag(name string) bool {
	text, given := p.get(name)
	if !given {
		return false
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		p.bad("%s %.40q: it is true or false", name, text)
	}
	return b
}

// choice reads one of several words; absent: the first.
func (p *params) choice(name string, words ...string) string {
	s, given := p.get(name)
	if !given {
		return words[0]
	}
	for _, w := range words {
		if s == w {
			return s
		}
	}
	p.bad("%s %.40q: use %s", name, s, alternatives(words))
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
	text, given := p.get(name)
	if !given {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.bad("%s %.40q: a duration like 30s, 5m or 1h", name, text)
	}
	return d
}
