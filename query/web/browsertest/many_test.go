package browsertest

import (
	"fmt"
	"testing"
	"time"
)

// A long list is read a page at a time, has nodes for what is seen only, and stops asking when it is left.
func TestManyObjects(t *testing.T) {
	b := open(t, "#/objects?source=many")
	b.has(".sums", fmt.Sprintf("%d,000 objects", manyObjects/1000))
	for _, n := range []int{1000, 6000} {
		b.until(fmt.Sprintf(`(() => {
			const v = document.querySelector('.virtual');
			v.scrollTop = v.scrollHeight;
			return Number(v.getAttribute('aria-rowcount')) > %d;
		})()`, n))
	}
	b.until(`(() => {
		const v = document.querySelector('.virtual');
		v.scrollTop = 30 * 2000;
		return [...document.querySelectorAll('.rows .row')].some((r) => r.textContent.includes('many-00002000'));
	})()`)
	b.until(`(() => { // its page was let go of
		document.querySelector('.virtual').scrollTop = 0;
		return document.querySelector('.rows .row').textContent.includes('many-00000000');
	})()`)
	if n := js[int](b, `document.querySelectorAll('.rows .row').length`); n > 100 {
		t.Errorf("%d rows have nodes", n)
	}
	b.visit("#/objects?source=many&prefix=many-0009999")
	b.has(".sums", "10 objects")
	b.has(".list", "10 listed, that is all.")
	b.key("j")
	b.key("j")
	b.until(`document.querySelector('.row.current')?.textContent.includes('many-00099991')`)
	b.key("\r")
	b.has("h1.key", "many-00099991")
}

// What nobody waits for any more is not answered to the end.
func TestCancel(t *testing.T) {
	b := open(t, "#/now")
	b.has(".losses", "transport")
	for range 5 { // views are left before they are there
		for _, v := range []string{"timeline", "objects", "gaps", "timeline?by=tenant"} {
			b.run(fmt.Sprintf(`location.hash = '#/%s'`, v))
		}
	}
	b.until(`document.querySelector('.plot')`)
	deadline := time.Now().Add(patience)
	for it.asked.Load() > 0 && time.Now().Before(deadline) {
		b.run(`new Promise((r) => setTimeout(r, 50))`)
	}
	if n := it.asked.Load(); n > 0 {
		t.Errorf("%d questions are still being answered", n)
	}
	if n := js[int](b, `document.querySelectorAll('main > .view').length`); n != 1 {
		t.Errorf("%d views are shown", n)
	}
}

// Pages that are far from what is seen are let go of, and asked for again.
func TestFarPagesAreForgotten(t *testing.T) {
	b := open(t, "#/gaps")
	got := js[string](b, `import('/web/js/pages.js').then(async ({ pages }) => {
		let asked = 0;
		const p = pages({ size: 10, kept: 3, mark: (l) => l, changed: () => {}, ask: async (after) => {
			asked++;
			const from = after === undefined ? 0 : after + 1;
			return Array.from({ length: Math.min(10, 95 - from) }, (_, i) => from + i);
		} });
		while (!p.done) await p.more();
		const first = p.line(3);
		await new Promise((r) => setTimeout(r));
		return [p.count, asked, String(first), p.line(3), p.line(84), p.line(94) === undefined].join();
	})`)
	if want := "95,11,undefined,3,84,true"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
