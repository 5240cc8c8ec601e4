package browsertest

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/kvjournal/kvjournal/journal/event"
	"github.com/kvjournal/kvjournal/journal/mooncaketest"
)

// What comes while the page is open is shown, without being asked for.
func TestNow(t *testing.T) {
	b := open(t, "#/now")
	b.has(".panel h2", "The last minute")
	b.until(`[...document.querySelectorAll('.now tr')].some((r) => r.textContent.includes('live') && r.textContent.includes('connected'))`)
	b.has(".losses", "publisher restart")
	b.has(".losses", "transport")
	before := js[string](b, `[...document.querySelectorAll('.now tr')].find((r) => r.textContent.startsWith('live')).cells[6].textContent`)
	if err := it.master.Do(mooncaketest.Change{Type: event.Stored, Tenant: "default", Medium: "cpu", Key: "now-1"}); err != nil {
		t.Fatal(err)
	}
	b.until(fmt.Sprintf(`[...document.querySelectorAll('.now tr')].find((r) => r.textContent.startsWith('live')).cells[6].textContent !== %q`, before))
	b.until(`document.querySelectorAll('.shares .bar-line').length >= 2`)
}

// A person looks for a loss on the timeline, zooms in on it, reads what is known of it, and goes back.
func TestTimelineToGapAndBack(t *testing.T) {
	b := open(t, "#/timeline?source=night")
	b.until(`document.querySelectorAll('.plot rect.stored').length > 20`)
	b.until(`document.querySelectorAll('.loss-sign').length === 2`) // the loss, the restart
	whole := js[string](b, `document.querySelector('.range').textContent`)

	// Drag over the first fifth.
	box := js[struct{ X, Y, W float64 }](b, `(() => { const r = document.querySelector('.plot').getBoundingClientRect(); return { X: r.x, Y: r.y + 120, W: r.width }; })()`)
	b.do(chromedp.DragAndDropXY(box.X+20, box.Y, box.X+box.W/5, box.Y))
	b.until(`location.hash.includes('from=') && document.querySelectorAll('.loss-sign').length === 1 && document.querySelectorAll('.plot rect.stored').length > 20`)
	if zoomed := js[string](b, `document.querySelector('.range').textContent`); zoomed == whole {
		t.Errorf("the span is still %s", zoomed)
	}
	zoomed := b.hash()

	b.click(".loss-sign .hit")
	b.until(`location.hash.startsWith('#/gaps?gap=')`)
	b.has(".detail", "Missing seq1/641–720: 80")
	b.has(".detail", "raise the ZMQ send high-water mark")
	b.has(".detail table", "tenant-1")
	b.until(`/[\d,]+ of [\d,]+ objects that were present/.test(document.querySelector('.detail').textContent)`)

	b.back()
	b.until(fmt.Sprintf(`location.hash === %q && document.querySelector('.plot')`, zoomed))
	b.back()
	b.until(fmt.Sprintf(`document.querySelector('.range')?.textContent === %q`, whole))
	b.run("history.forward()")
	b.until(fmt.Sprintf(`location.hash === %q`, zoomed))
}

func TestTimelineByKeys(t *testing.T) {
	b := open(t, "#/timeline?source=night")
	b.until(`document.querySelector('.plot rect.stored')`)
	b.key(kb.ArrowRight)
	b.until(`location.hash.includes('at=')`)
	b.has(".about", "stored")
	b.has(".log tbody", "stored")
	b.key("+")
	b.until(`location.hash.includes('from=')`)
	b.key("0")
	b.until(`!location.hash.includes('from=')`)
	b.key("?")
	b.has("dialog", "zoom out")
	b.key(kb.Escape)
	b.until(`!document.querySelector('dialog')`)
	b.run(`(() => { const s = document.querySelector('[name=by]'); s.value = 'tenant'; s.dispatchEvent(new Event('change', { bubbles: true })); })()`)
	b.has(".plot .row-name", "tenant-1")
	b.click(".as-table summary")
	b.has(".as-table table", "tenant-1")
}

// Who asks for the keys of a view that is not drawn yet is told them when it is.
func TestKeysOfViewThatComes(t *testing.T) {
	b := open(t, "#/gaps?source=night")
	b.drawn()
	b.run(`(() => {
		const ask = window.fetch;
		const held = new Promise((done) => { window.letGo = done; });
		window.fetch = async (...all) => { await held; return ask(...all); };
	})()`)
	b.visit("#/timeline?source=night")
	b.until(`document.getElementById('main').getAttribute('aria-busy') === 'true'`)
	b.do(chromedp.KeyEvent("?"))
	b.has("dialog", "find an object")
	if js[bool](b, `document.querySelector('dialog').textContent.includes('zoom out')`) {
		t.Error("a view that is not drawn has keys")
	}
	b.run("letGo()")
	b.has("dialog", "zoom out")
	b.key(kb.Escape)
	b.until(`!document.querySelector('dialog')`)
	b.key("+")
	b.until(`location.hash.includes('from=')`)
}

// An object is found by its key; the slider tells what was known at other moments, as the command line does.
func TestObject(t *testing.T) {
	b := open(t, "#/objects?source=night&certainty=uncertain&at=2026-11-01T12:00:03Z")
	b.has(".sums", "uncertain")
	b.until(`document.querySelectorAll('.object-row').length > 10`)
	key := js[string](b, `[...document.querySelectorAll('.object-row .tenant')].find((c) => c.textContent === 'default').parentNode.querySelector('.key').textContent`)
	if strings.Contains(key, "…") {
		t.Fatalf("%s is cut", key)
	}

	b.key("/")
	b.until(`document.activeElement.id === 'find-key'`)
	b.fill("#find-key", key)
	b.until(`location.hash.startsWith('#/object?key=')`)
	b.has("h1.key", key)
	b.until(`document.querySelectorAll('.lanes rect.present, .lanes rect.absent').length > 1`)
	b.until(`document.querySelectorAll('.lanes .mark').length >= 1`)
	b.has(".story", "As of the newest that is indexed")
	b.has(".verdict", "as of")

	// Back in time by the slider: the answer is that of the moment.
	b.run(`document.querySelector('.moment').focus()`)
	b.run(`(() => { const s = document.querySelector('.moment'); s.value = Date.parse('2026-11-01T12:00:03Z'); s.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	b.has(".verdict", "at 2026-11-01 12:00:0")
	// What to do next can be run as it stands, wherever the data is.
	dir := js[string](b, `fetch('v1/stats').then((r) => r.json()).then((s) => s.dir)`)
	if !filepath.IsAbs(dir) {
		t.Errorf("the data is in %q", dir)
	}
	b.until(`document.querySelector('.command')?.textContent.includes(' --dir ')`)
	commands := js[[]string](b, `[...document.querySelectorAll('.command')].map((c) => c.textContent)`)
	if len(commands) == 0 {
		t.Error("no command is shown")
	}
	for _, command := range commands {
		if words := strings.Fields(command); len(words) < 4 || words[0] != "kvjournal" || words[2] != "--dir" || words[3] != dir {
			t.Errorf("%q does not name the directory %s", command, dir)
		}
	}
	if got := js[string](b, `import('/web/js/text.js').then(({ inDir }) => inDir('kvjournal gaps --source s', "/a b/it's") + '|' + inDir('kvjournal stats', '/d') + '|' + inDir('kvjournal stats', ''))`); got != `kvjournal gaps --dir '/a b/it'\''s' --source s|kvjournal stats --dir /d|kvjournal stats` {
		t.Error(got)
	}
	b.until(`location.hash.includes('at=2026-11-01T12')`)
	at := js[string](b, `new URLSearchParams(location.hash.split('?')[1]).get('at')`)
	want := js[struct {
		Present   bool
		Certainty string
	}](b, fmt.Sprintf(`fetch('v1/why?' + new URLSearchParams({ source: 'night', object_key: %q, at: %q })).then((r) => r.json()).then((w) => ({ Present: w.answer.present, Certainty: w.answer.certainty }))`, key, at))
	state := map[bool]string{true: "present", false: "absent"}[want.Present]
	b.has(".verdict", state+" "+want.Certainty)

	// By keys from event to event; each is an offset.
	b.run(`document.activeElement.blur()`)
	b.key(kb.ArrowRight)
	b.until(`/at=offset%3A\d+/.test(location.hash) && document.querySelector('.events tr[aria-current]')`)
	b.key("0")
	b.until(`!location.hash.includes('at=')`)
	b.has(".verdict", "as of")

	// What touched it leads to the loss.
	b.click(".events tr.mark a[href^='#/gaps']")
	b.until(`location.hash.startsWith('#/gaps?gap=')`)
	b.until(`document.querySelector('.detail h2')`)
}

// An object of another tenant than the default is found too.
func TestFoundElsewhere(t *testing.T) {
	b := open(t, "#/objects?source=night&tenant=tenant-1")
	b.until(`document.querySelectorAll('.object-row .key').length > 5`)
	key := js[string](b, `document.querySelector('.rows .object-row .key').textContent`)
	b.visit("#/object?key=" + url.QueryEscape(key))
	b.until(`location.hash.includes('tenant=tenant-1')`)
	b.has(".facts", "tenant-1")
	b.until(`document.querySelector('.lanes rect')`)

	b.visit("#/object?key=never-seen")
	b.has(".panel", "No event that was recorded ever named this object.")
	b.has(".story", "No event that was recorded")
}

func TestGaps(t *testing.T) {
	b := open(t, "#/gaps")
	b.until(`document.querySelectorAll('.rows .gap-row').length >= 2`)
	b.click(".chips a[href*='cause=transport']")
	b.until(`document.querySelectorAll('.rows .gap-row').length === 1`)
	b.has(".detail h2", "transport")
	b.click(".detail .links a[href^='#/objects']")
	b.until(`document.querySelectorAll('.object-row .sure .uncertain').length > 5`)
	b.back()
	b.until(`document.querySelectorAll('.rows .gap-row').length === 1`)
	b.click(".chips a[aria-current]") // once more: all
	b.until(`document.querySelectorAll('.rows .gap-row').length >= 2`)
	first := js[string](b, `document.querySelector('.detail').textContent`)
	b.key("j")
	b.until(fmt.Sprintf(`location.hash.includes('gap=') && document.querySelector('.detail').textContent !== %q`, first))
}

// A token is asked for once, kept for the tab, and asked for again if it is wrong.
func TestToken(t *testing.T) {
	b := openAt(t, it.guarded.URL, "#/gaps", "401")
	b.has("dialog", "A token is needed")
	b.fill("#token", "wrong")
	b.has("dialog", "was not accepted")
	b.fill("#token", token)
	b.until(`document.querySelectorAll('.rows .gap-row').length >= 2`)
	b.visit("#/now")
	b.has(".losses", "transport")
	if n := js[int](b, `document.querySelectorAll('dialog').length`); n != 0 {
		t.Errorf("%d dialogs", n)
	}
}

// A wrong question is told with what was wrong, and the page goes on.
func TestErrors(t *testing.T) {
	b := open(t, "#/objects?at=yesterday", "400")
	b.has(".failure", "RFC 3339")
	if n := js[int](b, `document.querySelectorAll('.failure').length`); n != 1 {
		t.Errorf("it is told %d times", n)
	}
	b.click("nav a[href='#/gaps']")
	b.until(`document.querySelectorAll('.rows .gap-row').length >= 2`)
}

func TestTheme(t *testing.T) {
	b := open(t, "#/gaps")
	ground := func() string { return js[string](b, `getComputedStyle(document.body).backgroundColor`) }
	light := ground()
	b.key("t")
	b.until(`document.documentElement.dataset.theme === 'light'`)
	b.key("t")
	b.until(`document.documentElement.dataset.theme === 'dark'`)
	if dark := ground(); dark == light {
		t.Errorf("dark is %s too", dark)
	}
	b.do(chromedp.Reload())
	b.until(`document.documentElement.dataset.theme === 'dark'`)
	b.run(`localStorage.clear()`)
}
