package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// views are one of each, with what is there once it is drawn.
var views = []struct{ link, drawn string }{
	{"#/now", `document.querySelector('.losses') && document.querySelector('.shares')`},
	{"#/timeline?source=night&at=2026-11-01T12:00:03Z", `document.querySelector('.loss-sign') && document.querySelector('.log')`},
	{"#/timeline?source=night&by=tenant", `document.querySelector('.row-name')`},
	{"#/gaps", `document.querySelector('.detail table')`},
	{"#/objects?source=night&state=any", `document.querySelectorAll('.rows .row').length > 3`},
	{"#/objects?source=hostile", `document.querySelectorAll('.rows .row').length > 3`},
	{"#/object?source=hostile&key64=dHdvCmxpbmVz", `document.querySelector('.lanes rect') && document.querySelector('.story')`},
	{"#/object", `document.querySelector('.empty')`},
}

// Nothing is wider than the page, on a desk or on a phone; controls and charts have names; text can be read on its ground.
func TestLooks(t *testing.T) {
	b := open(t, "#/now")
	for _, v := range views {
		b.visit(v.link)
		b.until(v.drawn)
		for _, width := range []int64{1400, 390} {
			b.do(chromedp.EmulateViewport(width, 900))
			at := fmt.Sprintf("%s, %d px", v.link, width)
			b.until(fmt.Sprintf(`innerWidth === %d`, width))
			b.run(`new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`) // charts are drawn anew
			if wide := js[int64](b, `document.documentElement.scrollWidth`); wide > width {
				t.Errorf("%s: %d px wide: %v", at, wide, js[[]string](b, beyond))
			}
			if bad := js[[]string](b, unnamed); len(bad) > 0 {
				t.Errorf("%s: without a name: %v", at, bad)
			}
			for _, theme := range []string{"light", "dark"} {
				b.run(fmt.Sprintf(`document.documentElement.dataset.theme = %q`, theme))
				if bad := js[[]string](b, faint); len(bad) > 0 {
					t.Errorf("%s, %s: too faint: %v", at, theme, bad)
				}
			}
		}
	}
}

// beyond are elements that reach beyond the page.
const beyond = `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll, .virtual, svg')).map((e) => e.tagName + '.' + (e.getAttribute('class') ?? '') + ': ' + e.textContent.slice(0, 20))`

// unnamed are controls and pictures without a name.
const unnamed = `[...document.querySelectorAll('button, a, input, select, svg[role=img], [role=region], [role=table]')].filter((e) => e.getClientRects().length > 0)
	.filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || document.getElementById(e.getAttribute('aria-labelledby')))).map((e) => e.outerHTML.slice(0, 120))`

// faint are texts with a contrast below 4.5 to the ground they stand on.
const faint = `(() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return { r: m[0], g: m[1], b: m[2], a: m[3] ?? 1 }; };
	const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 });
	const light = ({ r, g, b }) => { const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
	const ground = (e) => {
		const stack = [];
		for (let n = e; n; n = n.parentElement) stack.push(parse(getComputedStyle(n).backgroundColor));
		return stack.reverse().reduce((under, c) => over(c, under), { r: 255, g: 255, b: 255, a: 1 });
	};
	const out = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest('.unseen, title, noscript, script, .skip')) continue;
		const style = getComputedStyle(e);
		const g = ground(e);
		const c = over(parse(e instanceof SVGElement ? style.fill : style.color), g);
		const [a, b] = [light(c), light(g)];
		if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) out.add(e.tagName + '.' + (e.getAttribute('class') ?? '') + ': ' + walk.currentNode.data.trim().slice(0, 30) + ' ' + style.color);
	}
	return [...out];
})()`
