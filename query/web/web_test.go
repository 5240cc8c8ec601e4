package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/journal/continuity"
)

func get(method, target, tag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	for _, c := range []struct {
		method, target string
		status         int
		mime           string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "text/html; charset=utf-8"},
		{"GET", "/web/js/main.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/web/base.css", 200, "text/css; charset=utf-8"},
		{"GET", "/web/icon.svg", 200, "image/svg+xml"},
		{"GET", "/web/", 404, ""},
		{"GET", "/web/js", 404, ""},
		{"GET", "/web/../web.go", 404, ""},
		{"GET", "/v1/stats", 404, ""},
		{"POST", "/", 405, ""},
	} {
		w := get(c.method, c.target, "")
		if w.Code != c.status || c.mime != "" && w.Header().Get("Content-Type") != c.mime {
			t.Errorf("%s %s: %d, %q", c.method, c.target, w.Code, w.Header().Get("Content-Type"))
		}
		if c.status != 200 {
			continue
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("%s: policy %q", c.target, got)
		}
		if again := get(c.method, c.target, w.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s again: %d with %d bytes", c.target, again.Code, again.Body.Len())
		}
	}
}

// The page makes no markup of text, has nothing inline, and loads nothing from elsewhere. The policy would stop it; this tells at once.
func TestNothingInlineOrForeign(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|\bstyle=|\bon[a-z]+="|https?://`)
	namespace := regexp.MustCompile(`http://www\.w3\.org/2000/svg`)
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(namespace.ReplaceAllString(string(b), ""), "\n") {
			if m := bad.FindString(line); m != "" {
				t.Errorf("%s:%d: %s", name, i+1, m)
			}
		}
		if mimes[name[strings.LastIndexByte(name, '.'):]] == "" {
			t.Errorf("%s: its type is not known", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is imported and linked exists.
func TestFilesFitTogether(t *testing.T) {
	page, err := static.ReadFile("static/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?:href|src)="(web/[^"]+)"`).FindAllSubmatch(page, -1) {
		if w := get("GET", "/"+string(m[1]), ""); w.Code != 200 {
			t.Errorf("index.html: %s: %d", m[1], w.Code)
		}
	}
	scripts, err := fs.Glob(static, "static/js/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, name := range scripts {
		b, err := static.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`from '\./([^']+)'`).FindAllSubmatch(b, -1) {
			if w := get("GET", "/web/js/"+string(m[1]), ""); w.Code != 200 {
				t.Errorf("%s: %s: %d", name, m[1], w.Code)
			}
		}
	}
}

// Each cause that a loss can have is explained, in the words of the command line.
func TestCausesAreExplained(t *testing.T) {
	page, err := static.ReadFile("static/js/causes.js")
	if err != nil {
		t.Fatal(err)
	}
	command, err := os.ReadFile("../../cmd/kvjournal/gaps.go")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string][2]string{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z_]+): \['(.*)', '(.*)'\],$`).FindAllStringSubmatch(string(page), -1) {
		said[m[1]] = [2]string{strings.ReplaceAll(m[2], `\'`, `'`), strings.ReplaceAll(m[3], `\'`, `'`)}
	}
	table := regexp.MustCompile(`(?m)\{"([a-z_]+)", "([^"]*)",\n\t\t"([^"]*)"\}`).FindAllStringSubmatch(string(command), -1)
	if len(table) < 10 {
		t.Fatalf("%d causes in gaps.go", len(table))
	}
	for _, m := range table {
		if said[m[1]] != [2]string{m[2], m[3]} {
			t.Errorf("%s: the page says %q, the command %q", m[1], said[m[1]], m[2:])
		}
		delete(said, m[1])
	}
	for name := range said {
		t.Errorf("%s: no cause of the command line", name)
	}
	for c := continuity.CauseNone + 1; c.Known(); c++ {
		if !strings.Contains(string(page), "  "+c.String()+":") {
			t.Errorf("%s is not explained", c)
		}
	}
}

// What a link shows that names no view has the views' own titles, not copies of them.
func TestTitlesStandOnce(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b, err := static.ReadFile("static/js/" + name + ".js")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	title := regexp.MustCompile(`(?m)^export const title = ('.*');$`)
	others := read("none") + read("main") + read("views")
	for _, view := range []string{"now", "timeline", "gaps", "objects", "object"} {
		m := title.FindStringSubmatch(read(view))
		if m == nil {
			t.Errorf("%s has no title", view)
		} else if strings.Contains(others, m[1]) {
			t.Errorf("%s stands elsewhere too", m[1])
		}
	}
}
