package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query/httpapi"
)

// detailOf is the detail of the problem document that a reply must be.
func detailOf(t *testing.T, w *httptest.ResponseRecorder, status int) string {
	t.Helper()
	var p httpapi.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status || p.Status != status || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%d %s: %.300s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return p.Detail
}

// Every question refuses what it does not know, whether it stands in the path or in a body.
func TestUnknownParameters(t *testing.T) {
	s := newSource(t)
	s.rebuild = func(func(applied, total uint64)) error { t.Error("rebuilt"); return nil }
	n := 0
	for _, route := range httpapi.Routes() {
		if !strings.HasPrefix(route.Path, "/v1/") {
			continue
		}
		n++
		ways := map[string]string{route.Path + "?surplus=1": ""}
		if route.Method == "POST" && route.Path != "/v1/lookup" {
			ways[route.Path] = "surplus=1"
		}
		for target, body := range ways {
			said := detailOf(t, request(s, route.Method, target, body), 400)
			if body != "" && (route.Right == httpapi.Local || route.Right == httpapi.Reconcile) {
				if !strings.Contains(said, "has a body, which is not read") {
					t.Errorf("%s %s %s: %s", route.Method, target, body, said)
				}
				continue
			}
			if !strings.HasPrefix(said, `there is no parameter "surplus"; there are `) {
				t.Errorf("%s %s %s: %s", route.Method, target, body, said)
			}
		}
	}
	if n < 25 {
		t.Errorf("%d routes were asked", n)
	}
}

// What was most likely meant is named, whatever is sent.
func TestMeantParameters(t *testing.T) {
	s := newSource(t)
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		method, target, body string
		say                  string
	}{
		{"GET", "/v1/log?limt=3", "", `there is no parameter "limt"; did you mean limit?; there are after, backend_id, backend_id_base64,`},
		{"GET", "/v1/lookup?key=k", "", "did you mean object_key or object_key_base64?"},
		{"GET", "/v1/lookup?object_key=k&tenant=t", "", "did you mean tenant_id or tenant_id_base64?"},
		{"GET", "/v1/gaps?Source=s", "", "did you mean source?"},
		{"GET", "/v1/gaps?a=1&b=2&c=3&d=4&e=5", "", `no parameter "a", "b", "c" or 2 more;`},
		{"GET", "/v1/gaps?limt=x&from=soon", "", "limt"},
		{"GET", "/v1/gaps?from=-1h&from=-2h", "", "from is given 2 times"},
		{"GET", "/v1/log?type=stored&type=removed", "", "commas between"},
		{"POST", "/v1/gaps?source=a", "source=b", "source is given 2 times"},
		{"POST", "/v1/gaps", long + "=1", `there is no parameter "xxx`},
		{"GET", "/v1/gaps?progress=perhaps", "", "true or false"},
		{"GET", "/v1/stats?dir=x", "", "there are none"},
		{"POST", "/v1/lookup", `{"object_key":"k","tenantid":"t"}`, `line 1: there is no field "tenantid"; did you mean tenant_id?; there are backend_id,`},
		{"POST", "/v1/lookup", `[{"object_key":"k"},{"object_key":"k","at":"now"}]`, `question 2: there is no field "at"; there are backend_id,`},
		{"POST", "/v1/lookup", `{"object_key":7}`, "line 1: object_key is text, not a JSON number"},
		{"POST", "/v1/lookup", `"k"`, "line 1: a question is an object, not a JSON string"},
		{"POST", "/v1/lookup", `[{"object_key":"k"},7]`, "a question is an object, not a JSON number"},
		{"GET", "/v1/lookup", "", "name the object: object_key=KEY"},
		{"GET", "/v1/why?object_key=&at=soon", "", "name the object: object_key=KEY"},
		{"GET", "/v1/history?kye=k", "", `no parameter "kye"`},
		{"POST", "/v1/lookup?source=s", `{"object_key":"k"}`, `there is no parameter "source"; there are at`},
	} {
		if said := detailOf(t, request(s, c.method, c.target, c.body), 400); !strings.Contains(said, c.say) || len(said) > 700 {
			t.Errorf("%s %s %.60s:\n%.800s\nwant %s", c.method, c.target, c.body, said, c.say)
		}
	}
}

// A body that is not what the question reads is refused with what it reads.
func TestBodies(t *testing.T) {
	s := newSource(t)
	for _, c := range []struct {
		method, path, kind, encoding, body string
		status                             int
		say                                string
	}{
		{"POST", "/v1/gaps", "application/x-www-form-urlencoded; charset=utf-8", "", "no_objects=true\r\n", 200, ""},
		{"POST", "/v1/gaps", "", "", "no_objects=true", 200, ""},
		{"POST", "/v1/gaps", "", "identity", "no_objects=true", 200, ""},
		{"POST", "/v1/gaps", "application/json", "", `{"no_objects":true}`, 415, "the body is application/json"},
		{"POST", "/v1/gaps", "application/x-www-form-urlencoded", "", `{"no_objects":true}`, 415, "seems to be JSON"},
		{"POST", "/v1/gaps", "multipart/form-data; boundary=x", "", "--x--", 415, "multipart/form-data"},
		{"POST", "/v1/gaps", "", "gzip", "\x1f\x8b", 415, "send it as it is"},
		{"POST", "/v1/lookup", "", "gzip", "\x1f\x8b", 415, "send it as it is"},
		{"POST", "/v1/lookup", "text/plain", "", `{"object_key":"k"}`, 200, ""},
		{"POST", "/v1/lookup", "multipart/form-data; boundary=x", "", "--x--", 415, "as JSON, one a line"},
		{"POST", "/v1/reconcile", "", "", "source=s", 400, "has a body, which is not read"},
		{"GET", "/v1/gaps", "", "", "no_objects=true", 400, "has a body, which is not read"},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		if c.encoding != "" {
			r.Header.Set("Content-Encoding", c.encoding)
		}
		w := httptest.NewRecorder()
		httpapi.Handler(s).ServeHTTP(w, r)
		if c.status == http.StatusOK {
			if w.Code != c.status {
				t.Errorf("%+v: %d %s", c, w.Code, w.Body)
			}
			continue
		}
		if said := detailOf(t, w, c.status); !strings.Contains(said, c.say) {
			t.Errorf("%+v: %s", c, said)
		}
	}
}

// A path or a method that there is not is answered with those that there are.
func TestPathsAndMethods(t *testing.T) {
	s := newSource(t)
	for target, say := range map[string]string{
		"/v1/lookup/": "but /v1/lookup;", "/lookup": "but /v1/lookup;", "/healthz/": "but /healthz;", "/v1/healthz": "there is no",
		"/v1/lookups": "did you mean /v1/lookup?", "/v1/objcets": "did you mean /v1/objects?", "/v1/": "there is no", "//v1/gaps": "but /v1/gaps;",
	} {
		if said := detailOf(t, request(s, "GET", target, ""), 404); !strings.Contains(said, say) {
			t.Errorf("%s: %s", target, said)
		}
	}
	for _, c := range []struct {
		method, path, allow string
		status              int
	}{
		{"OPTIONS", "/v1/lookup", "OPTIONS, GET, POST, HEAD", 204},
		{"OPTIONS", "/v1/rebuild", "OPTIONS, POST", 204},
		{"PUT", "/v1/stats", "OPTIONS, GET, HEAD", 405},
		{"HEAD", "/v1/stats", "", 200},
		{"HEAD", "/v1/gaps", "", 200},
	} {
		if w := request(s, c.method, c.path, ""); w.Code != c.status || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q", c.method, c.path, w.Code, w.Header().Get("Allow"))
		}
	}
}
