package browsertest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/chromedp/chromedp/kb"
)

// No key, tenant, group or medium becomes markup, in any view; each is shown quoted where it cannot be seen.
func TestHostileNames(t *testing.T) {
	b := open(t, "#/objects?source=hostile")
	b.until(`document.querySelectorAll('.rows .object-row').length >= 8`)
	title := js[string](b, `document.title`)
	for i, k := range hostileKeys {
		encoded := base64.RawURLEncoding.EncodeToString([]byte(k.key))
		for j, tenant := range []string{hostileTenant, "default"} {
			if j > 0 && i > 0 {
				continue
			}
			if i == len(hostileKeys)-1 { // too long for an address: by its row
				b.visit("#/objects?source=hostile&prefix=LLLL&tenant=" + url.QueryEscape(tenant))
				b.until(`document.querySelectorAll('.rows .object-row').length === 1`)
				if n := js[int](b, `document.querySelector('.rows .object-row .key').textContent.length`); n > 100 {
					t.Errorf("%d characters of a long key in a row", n)
				}
				b.click(".rows .object-row .key a")
				b.until(`location.hash.includes('keyheld=')`)
				b.has(".note", "1,048,576 bytes")
			} else {
				b.visit(fmt.Sprintf("#/object?source=hostile&tenant=%s&key64=%s", url.QueryEscape(tenant), encoded))
				b.until(fmt.Sprintf(`document.querySelector('h1.key').textContent === %s`, quoted(k.shown)))
			}
			b.until(`document.querySelectorAll('.lanes rect.present').length === 2`)
			b.has(".facts", tenant)
			b.has(".facts", "<b>group</b>")
			b.has(".answer", `"<i>dsk\u202e"`)
			b.has(".lanes", `"<i>`)
			b.until(`document.querySelectorAll('.story li').length > 1`)
		}
	}
	b.visit("#/timeline?source=hostile&by=tenant")
	b.has(".log", "<img src=x")
	b.until(`document.querySelectorAll('.row-name').length === 2`)
	b.visit("#/now")
	b.has(".shares", "<script>")
	if made := js[int](b, `document.querySelectorAll('main script, main img, main b, main i').length`); made != 0 {
		t.Errorf("%d elements were made of names", made)
	}
	if now := js[string](b, `document.title`); now == "owned" || title == "owned" {
		t.Error("a name ran as a script")
	}
}

// What the page shows quoted can be typed into its search.
func TestFindQuoted(t *testing.T) {
	b := open(t, "#/objects")
	for _, k := range hostileKeys[:len(hostileKeys)-1] {
		b.run(fmt.Sprintf(`(() => { const f = document.getElementById('find-key'); f.focus(); f.value = %s; })()`, quoted(k.shown)))
		b.key(kb.Enter)
		b.until(fmt.Sprintf(`document.querySelector('h1.key')?.textContent === %s`, quoted(k.shown)))
		b.has(".facts", "hostile")
	}
}

// quoted is a text as JavaScript has it.
func quoted(s string) string {
	j, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(j)
}

// Bytes are shown as by the tables of the command line: random ones, and all that are near the edges of UTF-8.
func TestPrintable(t *testing.T) {
	b := open(t, "#/gaps")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var values [][]byte
	for _, k := range hostileKeys {
		values = append(values, []byte(k.key)[:min(len(k.key), 200)])
	}
	values = append(values, nil, []byte(`"`), []byte(`\`), []byte("\xed\xa0\x80"), []byte("\xf4\x90\x80\x80"), []byte("\xc0\xaf"), []byte("\ufeffx"), []byte("\xe2\x82"), []byte("\u00a0\u2028"))
	alphabet := []string{"a", "é", "世", "😀", "\u200b", "\u202e", "\x00", "\x7f", "\n", `"`, `\`, "\xff", "\xc3", "\xe4\xb8", "\xf0\x9f", "\u0301", " ", "\ue000", "\ufffd"}
	for range 300 {
		var v bytes.Buffer
		for range r.IntN(12) {
			v.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		values = append(values, v.Bytes())
	}
	var in []string
	for _, v := range values {
		in = append(in, base64.StdEncoding.EncodeToString(v))
	}
	list, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	shown := js[[]string](b, fmt.Sprintf(`import('/web/js/text.js').then((m) => %s.map((x) => m.bytes64(x)))`, list))
	for i, v := range values {
		if want := printable(v); shown[i] != want {
			t.Errorf("%q is shown as %s, not as %s", v, shown[i], want)
		}
	}
	back := js[[]string](b, fmt.Sprintf(`Promise.all([import('/web/js/link.js'), import('/web/js/text.js')]).then(([l]) => %s.map((x) => {
		const values = l.nameValues({ object_key_base64: x });
		const q = l.read(l.href('object', values)).q;
		return l.base64(q, 'key') ?? '';
	}))`, list))
	for i := range in {
		if back[i] != in[i] {
			t.Errorf("%q comes back from a link as %q", in[i], back[i])
		}
	}
}

// printable is the rule of the tables (cmd/kvjournal/output.go).
func printable(b []byte) string {
	s := string(b)
	if q := strconv.Quote(s); !utf8.Valid(b) || q != `"`+s+`"` {
		return q
	}
	return s
}

// A number beyond 2^53 is not rounded.
func TestLargeNumbers(t *testing.T) {
	b := open(t, "#/gaps")
	got := js[string](b, `import('/web/js/api.js').then((m) => { const v = m.parse('{"a":18446744073709551615,"b":9007199254740991,"c":"x 18446744073709551615\\"","d":-1.2345678901234567}'); return [v.a, v.b, v.c, v.d].join('|'); })`)
	if want := `18446744073709551615|9007199254740991|x 18446744073709551615"|-1.2345678901234567`; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if js[string](b, `import('/web/js/text.js').then((m) => m.number('18446744073709551615'))`) != "18,446,744,073,709,551,615" {
		t.Error("its digits are not grouped")
	}
}
