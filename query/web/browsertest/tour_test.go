package browsertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// resize makes the tab so large, and waits until it was drawn anew.
func (b *tab) resize(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	b.until(fmt.Sprintf(`innerWidth === %d && innerHeight === %d`, width, height))
	b.run(`new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
}

// No mark reaches into the next one, whatever is where; none is lost, and their order stays.
func TestMarksMerge(t *testing.T) {
	b := open(t, "#/gaps")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		places := make([]float64, r.IntN(400))
		for i := range places {
			places[i] = r.Float64() * 380
		}
		got := js[string](b, fmt.Sprintf(`import('/web/js/marks.js').then(({ merged, labelFrom }) => {
			const places = [%s];
			const marks = merged(places, (p) => p);
			const sorted = places.toSorted((a, b) => a - b);
			if (String(marks.flatMap((m) => m.of)) !== String(sorted)) return 'some were lost, or changed places';
			for (const [i, m] of marks.entries()) {
				if (m.p !== m.of[0]) return 'a mark is not where its first is';
				const end = m.p + Math.max(8, m.of.length > 1 ? labelFrom + 7 * String(m.of.length).length : 0);
				if (i + 1 < marks.length && marks[i + 1].p - 8 < end) return m.p + ' of ' + m.of.length + ' reaches into ' + marks[i + 1].p;
			}
			return '';
		})`, joined(places)))
		if got != "" {
			t.Fatalf("%v: %s", places, got)
		}
	}
	if got := js[string](b, `import('/web/js/marks.js').then(({ merged }) => merged([50, 0, 16, 17, 30], (p) => p).map((m) => m.of.join('+')).join(' '))`); got != "0 16+17+30 50" {
		t.Errorf("marks of %s", got)
	}
}

func joined(values []float64) string {
	s := ""
	for _, v := range values {
		s += fmt.Sprintf("%g,", v)
	}
	return s
}

// Where losses are dense, each mark can be read on a phone: with its count, from when to when, and how many events.
func TestDenseLosses(t *testing.T) {
	b := open(t, "#/gaps")
	b.until(`document.querySelector('.rows .gap-row')`)
	b.resize(420, 900)
	got := js[struct {
		Marks, Losses int
		Over          []string
		Said          string
	}](b, `import('/web/js/plot.js').then(async ({ plot }) => {
		const at = (s) => new Date(Date.UTC(2026, 10, 1, 12, 0, 0) + 1000 * s).toISOString();
		const buckets = Array.from({ length: 60 }, (_, i) => ({ begin: at(5 * i), end: at(5 * i + 5), events: 3, by_type: { stored: 2, removed: 1, cleared: 0 }, by_tenant: [], gaps: [] }));
		const gaps = Array.from({ length: 140 }, (_, i) => ({ source: 's', epoch: 1, cause: i % 10 ? 'publisher_queue' : 'publisher_restart', first_offset_after: i, time_after: at(2 * i), lost_events: 10, missing_seqs: 10 }));
		const node = document.createElement('div');
		document.querySelector('main').replaceChildren(node);
		plot(node, { buckets, byTenant: false, signal: new AbortController().signal, zoom() {}, move() {} }).losses(gaps);
		while (!node.querySelector('.loss-sign')) await new Promise(requestAnimationFrame);
		const signs = [...node.querySelectorAll('.loss-sign')];
		const box = (e) => [...e.querySelectorAll('.many, path')].map((x) => x.getBoundingClientRect());
		const over = [];
		for (let i = 1; i < signs.length; i++) {
			const end = Math.max(...box(signs[i - 1]).map((r) => r.right));
			const from = Math.min(...box(signs[i]).map((r) => r.left));
			if (from < end) over.push(end + ' > ' + from);
		}
		return { Marks: signs.length, Losses: signs.reduce((n, x) => n + Number(x.querySelector('.many')?.textContent ?? 1), 0), Over: over, Said: signs[0].querySelector('title').textContent };
	})`)
	if len(got.Over) > 0 || got.Losses != 140 || got.Marks < 5 || got.Marks > 30 {
		t.Errorf("%+v", got)
	}
	var n int
	var end string
	if _, err := fmt.Sscanf(got.Said, "%d losses from 2026-11-01 12:00:00.000 to 2026-11-01 %s", &n, &end); err != nil || n < 2 {
		t.Errorf("it says %q: %v", got.Said, err)
	}
	b.has(".loss-sign title", fmt.Sprintf("; %d events lost", 10*n))
}

// Once nobody answers, nothing is shown as if it still were so, and it is said since when; once someone does, all is as before.
func TestNoAnswer(t *testing.T) {
	port, err := mooncaketest.ReservePort() // the second one listens where the first did
	if err != nil {
		t.Fatal(err)
	}
	defer port.Release()
	l, err := net.Listen("tcp", port.Address())
	if err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	h := it.handler("")
	serve := func(l net.Listener) *httptest.Server {
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/stats" {
				<-begun
			}
			h.ServeHTTP(w, r)
		})}}
		s.Start()
		return s
	}
	s := serve(l)
	b := openAt(t, s.URL, "#/now", "Failed to load resource")
	b.until(`[...document.querySelectorAll('.panel .body')].every((p) => p.querySelector('.waiting')) && document.querySelectorAll('.panel').length === 4`)
	b.has(".figures", "Asking")
	close(begun)
	b.until(`document.querySelector('.now .on') && document.querySelector('.losses') && document.querySelector('.chart svg')`)
	b.has(".now .legend", "events a second, stored")

	s.CloseClientConnections()
	s.Close()
	b.until(`/No answer since \d\d:\d\d:\d\d \(UTC\)\..*as of \d\d:\d\d:\d\d \(UTC\)/.test(document.querySelector('.trouble')?.textContent)`)
	if js[bool](b, `!!document.querySelector('.now .on, .now .off') || /connected|ago|Recording/.test(document.querySelector('main').innerText)`) {
		t.Errorf("it is shown as if it were so now:\n%s", b.seen())
	}
	b.has(".figures", "as of")
	if n := js[int](b, `document.querySelectorAll('.stale .losses, .stale .chart svg').length`); n != 2 {
		t.Errorf("%d of what was known last are shown", n)
	}

	if l, err = net.Listen("tcp", port.Address()); err != nil {
		t.Fatal(err)
	}
	again := serve(l)
	t.Cleanup(func() {
		again.CloseClientConnections()
		again.Close()
	})
	b.until(`document.querySelector('.now .on') && !document.querySelector('.stale') && !document.querySelector('.trouble')?.textContent.includes('No answer')`)
}

// What a text made for a terminal has within backticks is code, and text for all that.
func TestBackticksAreCode(t *testing.T) {
	b := open(t, "#/gaps")
	for text, want := range map[string]string{
		"the tenant `default` only":   "the tenant |CODE:default| only",
		"`a` and `<b>b</b>`":          "|CODE:a| and |CODE:<b>b</b>|",
		"one ` alone, and none":       "one ` alone, and none",
		"(`journalctl -u kvjournal`)": "(|CODE:journalctl -u kvjournal|)",
	} {
		got := js[string](b, fmt.Sprintf(`Promise.all([import('/web/js/parts.js'), import('/web/js/dom.js')]).then(([{ coded }, { h }]) => [...h('p', null, coded(%s)).childNodes].map((n) => (n.nodeType === Node.TEXT_NODE ? n.data : n.tagName + ':' + n.textContent)).join('|'))`, quoted(text)))
		if trimmed(got) != trimmed(want) {
			t.Errorf("%q is shown as %s", text, got)
		}
	}
	if got := js[string](b, `Promise.all([import('/web/js/parts.js'), import('/web/js/causes.js')]).then(([{ coded }, { causes }]) => Object.values(causes).flat().flatMap((x) => [coded(x)].flat()).filter((x) => typeof x === 'string' && x.includes('\x60')).join('; '))`); got != "" {
		t.Errorf("backticks are left: %s", got)
	}
}

// trimmed leaves out that nothing stands before or behind code.
func trimmed(s string) string {
	if s != "" && s[0] == '|' {
		s = s[1:]
	}
	if s != "" && s[len(s)-1] == '|' {
		s = s[:len(s)-1]
	}
	return s
}

// "At least" is said only where the number is not exact.
func TestLostAtLeast(t *testing.T) {
	b := open(t, "#/gaps")
	for losses, want := range map[string]string{
		`[{ lost_events: 76000 }, { lost_events: 776 }]`:                          "76,776 events lost",
		`[{ lost_events: 5 }, { lost_events_min: 4, lost_events_max: 4 }]`:        "9 events lost",
		`[{ lost_events: 5 }, { lost_events_min: 4, lost_events_max: 7 }]`:        "9 events lost at least",
		`[{ lost_events: 5 }, { cause: 'publisher_restart' }, { lost_events: 1}]`: "6 events lost at least",
		`[{ cause: 'late_join' }]`:                                                "",
	} {
		if got := js[string](b, fmt.Sprintf(`import('/web/js/losses.js').then((m) => m.lostOf(%s))`, losses)); got != want {
			t.Errorf("%s: %q, not %q", losses, got, want)
		}
	}
}

// Lists fill the page and no more on a desk; on a phone what is short takes little room, says what it is, and keys keep both ends.
func TestListsFit(t *testing.T) {
	b := open(t, "#/gaps")
	b.resize(1400, 1000)
	b.until(`document.querySelector('.detail table')`)
	fits := func(what string) {
		t.Helper()
		if tall := js[int](b, `document.documentElement.scrollHeight`); tall > 1000 {
			t.Errorf("%s: %d px tall", what, tall)
		}
	}
	fits("gaps")
	b.visit("#/objects?source=night")
	b.until(`document.querySelectorAll('.rows .row').length > 20`)
	b.until(`/^[\d,]+ objects, [\d,]+ uncertain, as of 2026/.test(document.querySelector('.sums .lead')?.textContent)`)
	fits("objects")
	b.visit("#/objects?source=night&certainty=uncertain&at=2026-11-01T12:00:03Z")
	b.until(`/^[\d,]+ uncertain objects, as of 2026/.test(document.querySelector('.sums .lead')?.textContent)`)
	if said := js[string](b, `document.querySelector('.sums').textContent.match(/uncertain/g).length + document.querySelector('.sums').textContent`); said[0] != '1' {
		t.Errorf("it is said more than once: %s", said)
	}

	b.resize(420, 900)
	b.until(`document.querySelectorAll('.rows .row .short-key .from + span').length > 3`)
	if bad := js[[]string](b, `[...document.querySelectorAll('.rows .row')].filter((r) => {
		const [key, end] = [r.querySelector('.short-key'), r.querySelector('.short-key .from + span')];
		return end && (end.getBoundingClientRect().right > r.getBoundingClientRect().right || !key.title.endsWith(end.textContent) || key.title.slice(0, 9) !== key.textContent.slice(0, 9));
	}).map((r) => r.textContent)`); len(bad) > 0 {
		t.Errorf("keys are cut at their end: %v", bad)
	}
	b.visit("#/gaps?cause=transport")
	b.until(`document.querySelector('.detail table') && document.querySelectorAll('.rows .gap-row').length === 1`)
	if hole := js[float64](b, `document.querySelector('.detail').getBoundingClientRect().top - document.querySelector('.rows .gap-row').getBoundingClientRect().bottom`); hole < 0 || hole > 40 {
		t.Errorf("a hole of %g px behind the only row", hole)
	}
	if said := js[string](b, `document.querySelector('.rows .gap-row .gone').innerText`); said[:13] != "events lost: " {
		t.Errorf("it says %q", said)
	}
}

// A restart is drawn as the legend says.
func TestRestartOfAnObject(t *testing.T) {
	b := open(t, "#/objects?source=night")
	b.click(".rows .object-row .key a")
	b.until(`document.querySelector('.lanes svg')`)
	b.until(`[...document.querySelectorAll('.lanes .mark')].some((m) => m.textContent.startsWith('publisher restart') && m.querySelector('.break-line') && !m.querySelector('.mark-line'))`)
	b.until(`[...document.querySelectorAll('.events tr.break-row .broken')].some((x) => x.textContent === 'publisher restart')`)
	b.until(`[...document.querySelectorAll('.lanes .mark')].some((m) => m.textContent.startsWith('transport') && m.querySelector('.mark-line'))`)
}

// A link to a view that there is not says so.
func TestNoSuchView(t *testing.T) {
	b := open(t, "#/nosuch")
	for _, name := range []string{"nosuch", "constructor", "Now/x"} {
		b.visit("#/" + name + "?x=%ff")
		b.has("main h1", "No such view")
		b.has("main .lead code", name)
	}
	b.click("main .links a[href='#/gaps']")
	b.until(`document.querySelectorAll('.rows .gap-row').length >= 2`)
	b.visit("")
	b.has(".panel h2", "The last minute")
}

// Who types the beginning of a key finds those that begin with it.
func TestFindByPrefix(t *testing.T) {
	b := open(t, "#/gaps")
	b.fill("#find-key", "many-0009999")
	b.has(".note a", "Objects whose key begins with it")
	b.click(".note a[href*='prefix=many-0009999']")
	b.has(".sums", "10 objects")
	if v := js[string](b, `document.querySelector('[name=prefix]').value`); v != "many-0009999" {
		t.Errorf("the field has %q", v)
	}
}
