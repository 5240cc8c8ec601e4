package browsertest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience is how long a page may take for one thing, on a machine that has much else to do.
const patience = time.Minute

// The world and the browser are made once: each test has a tab of its own.
var (
	it      *world
	browser context.Context
)

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "browsertest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	it, err = newWorld(dir)
	defer func() {
		if err := it.close(); err != nil {
			fmt.Fprintln(os.Stderr, "end:", err)
		}
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "world:", err)
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, // root has none
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.UserDataDir(dir+"/chromium"), chromedp.WSURLReadTimeout(patience))
	if path := os.Getenv("KVJOURNAL_CHROMIUM"); path != "" {
		options = append(options, chromedp.ExecPath(path))
	}
	allocated, release := chromedp.NewExecAllocator(context.Background(), options...)
	defer release()
	var end context.CancelFunc
	browser, end = chromedp.NewContext(allocated)
	defer end()
	if err := chromedp.Do(browser); err != nil {
		fmt.Fprintf(os.Stderr, "no browser: %v; `make browser` installs chromium and runs these tests, KVJOURNAL_CHROMIUM names another one\n", err)
		return 1
	}
	return m.Run()
}

// tab is a tab of the browser, with the page in it.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu   sync.Mutex
	said []string
	// allowed is what may be said on the console.
	allowed []string
}

// open shows the page at a link (#/…).
func open(t *testing.T, link string, allowed ...string) *tab {
	t.Helper()
	return openAt(t, it.server.URL, link, allowed...)
}

func openAt(t *testing.T, base, link string, allowed ...string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser)
	b := &tab{t: t, ctx: ctx, base: base, allowed: allowed}
	if err := chromedp.Listen(ctx, b.listen); err != nil { // it makes the tab
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(ctx, 4*patience)
	b.ctx = ctx
	t.Cleanup(func() {
		b.complain()
		stop()
		end()
	})
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	script := page.AddScriptToEvaluateOnNewDocumentParams{Source: `addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.blockedURI, e.sample))`}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, script); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(1400, 900), chromedp.Navigate(base+"/"+link))
	return b
}

// listen notes what the page says, which is nothing if all is well.
func (b *tab) listen(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+a.Description)
		}
		b.said = append(b.said, fmt.Sprintf("console.%s %s", e.Type, strings.Join(words, " ")))
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.said = append(b.said, text)
	case *log.EventEntryAdded:
		b.said = append(b.said, fmt.Sprintf("%s: %s (%s)", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *page.EventJavascriptDialogOpening:
		b.said = append(b.said, "a dialog: "+e.Message)
	}
}

func (b *tab) complain() {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, s := range b.said {
		for _, a := range b.allowed {
			if strings.Contains(s, a) {
				continue next
			}
		}
		b.t.Errorf("the page said: %s", s)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.seen())
	}
}

// seen is the text of the page, for messages.
func (b *tab) seen() string {
	ctx, stop := context.WithTimeout(b.ctx, 5*time.Second)
	defer stop()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.hash.slice(0, 300) + '\n' + document.body.innerText.slice(0, 2000)`))
	if err != nil {
		return err.Error()
	}
	return text
}

// js evaluates an expression; a promise is awaited.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.seen())
	}
	return v
}

// run is js without a value.
func (b *tab) run(expression string) {
	b.t.Helper()
	js[chromedp.Void](b, expression)
}

// visit follows a link of the page (#/…), as if it had been clicked.
func (b *tab) visit(link string) {
	b.t.Helper()
	b.run(fmt.Sprintf("location.hash = %s", quoted(link)))
}

func (b *tab) back() {
	b.t.Helper()
	b.run("history.back()")
}

// until waits until an expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	ok := js[bool](b, fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + %d;
		const look = () => {
			let v = false;
			try { v = !!(%s); } catch {}
			if (v || performance.now() > end) done(v);
			else setTimeout(look, 20);
		};
		look();
	})`, patience.Milliseconds(), expression))
	if !ok {
		b.t.Fatalf("it never came to be: %s\n%s", expression, b.seen())
	}
}

// has waits until what a selector finds first holds a text.
func (b *tab) has(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, text))
}

// drawn waits until what the link names is shown, and nothing that came before it.
func (b *tab) drawn() {
	b.t.Helper()
	b.until(`((m) => m.dataset.link === location.hash && !m.hasAttribute('aria-busy'))(document.getElementById('main'))`)
}

// click clicks what a selector finds first, once it is there, and has stayed in its place for two frames: what is still being drawn moves.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	p := js[struct{ X, Y float64 }](b, fmt.Sprintf(`(async () => {
		const frame = () => new Promise(requestAnimationFrame);
		const end = performance.now() + %d;
		for (let before = '';;) {
			const e = document.querySelector(%q);
			e?.scrollIntoView({ block: 'center' });
			const r = e?.getBoundingClientRect();
			const at = r && [r.x, r.y, r.width, r.height].join();
			if (at && at === before || performance.now() > end) return { X: r.x + Math.min(r.width, 40) / 2, Y: r.y + Math.min(r.height, 20) / 2 };
			before = at;
			await frame();
			await frame();
		}
	})()`, patience.Milliseconds(), selector))
	b.do(chromedp.MouseClickXY(p.X, p.Y))
}

// key types keys on the page, once it is drawn: a view has no keys before.
func (b *tab) key(keys string) {
	b.t.Helper()
	b.drawn()
	b.do(chromedp.KeyEvent(keys))
}

// fill types a text into the field that a selector finds, and Enter.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.run(fmt.Sprintf(`(() => { const f = document.querySelector(%q); f.focus(); f.value = ''; })()`, selector))
	b.do(chromedp.KeyEvent(text + kb.Enter))
}

// hash is the state in the link.
func (b *tab) hash() string {
	b.t.Helper()
	return js[string](b, `location.hash`)
}
