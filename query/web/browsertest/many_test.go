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
	for _, n := range []int{1000, 3000} {
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
