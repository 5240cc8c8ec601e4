package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/kvjournal/kvjournal/query/near"
)

// Right is what a request may do.
type Right int

const (
	// Open needs no right: health, the page, the description of the API.
	Open Right = iota
	// Read asks questions.
	Read
	// Reconcile has the recorder read its master, beside all that Read may.
	Reconcile
	// Local is the owner of the directory, who comes by its socket.
	Local
)

func (r Right) String() string { return [...]string{"open", "read", "reconcile", "local"}[r] }

// Route is a path, how it is asked, and what that needs.
type Route struct {
	Method string
	Path   string
	Right  Right
	serve  http.HandlerFunc
}

// routes are all that a handler answers, but for the page.
func routes(s Source) []Route {
	pool := &linesPool{}
	question := func(f answerer) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { serve(w, r, s, pool, f) }
	}
	out := []Route{
		{"POST", "/v1/lookup", Read, question(lookup)},
		{"GET", "/v1/lookup", Read, question(lookupOne)},
		{"GET", "/v1/stats", Read, question(stats(s))},
		{"POST", "/v1/reconcile", Reconcile, question(reconcileNow(s))},
		{"POST", "/v1/backup", Local, func(w http.ResponseWriter, r *http.Request) { backupNow(w, r, s) }},
		{"POST", "/v1/prune", Local, question(prune)},
		{"POST", "/v1/rebuild", Local, question(rebuild(s))},
		{"GET", "/healthz", Open, healthz},
		{"GET", "/readyz", Open, func(w http.ResponseWriter, r *http.Request) { readyz(w, r, s) }},
		{"GET", "/metrics", Read, func(w http.ResponseWriter, r *http.Request) { metrics(w, r, s) }},
		{"GET", "/openapi.yaml", Open, openAPI},
	}
	for name := range questions {
		ask := question(answer(name))
		out = append(out, Route{"GET", "/v1/" + name, Read, ask}, Route{"POST", "/v1/" + name, Read, ask})
	}
	slices.SortFunc(out, func(a, b Route) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return out
}

// Routes are what a handler answers, in order of their paths.
func Routes() []Route { return routes(nil) }

// table finds routes.
type table map[string][]Route

func newTable(routes []Route) table {
	t := table{}
	for _, r := range routes {
		t[r.Path] = append(t[r.Path], r)
	}
	return t
}

// find returns the route of a request; where there is none it answers with why, and returns nil.
func (t table) find(w http.ResponseWriter, r *http.Request) *Route {
	with := t[r.URL.Path]
	var methods []string
	for i := range with {
		m := with[i].Method
		if m == r.Method || m == http.MethodGet && r.Method == http.MethodHead {
			return &with[i]
		}
		methods = append(methods, m)
	}
	if len(with) == 0 {
		refuse(w, r, ProblemNotFound, fmt.Sprintf("there is no %.100q%s; GET /openapi.yaml says what there is", r.URL.Path, t.meant(r.URL.Path)))
		return nil
	}
	allow := strings.Join(append([]string{http.MethodOptions}, methods...), ", ")
	if slices.Contains(methods, http.MethodGet) {
		allow += ", " + http.MethodHead
	}
	w.Header().Set("Allow", allow)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	refuse(w, r, ProblemMethod, fmt.Sprintf("%s is asked with %s", r.URL.Path, alternatives(methods)))
	return nil
}

// meant names the path that was most likely meant by one that there is not: as a part of a sentence, empty where none comes near.
func (t table) meant(path string) string {
	short := strings.Trim(path, "/")
	for _, try := range []string{"/" + short, "/v1/" + short} {
		if t[try] != nil {
			return ", but " + try
		}
	}
	paths := slices.Sorted(maps.Keys(t))
	for _, try := range []string{"/" + short, "/v1/" + short} {
		if like, is := near.Nearest(try, paths); is {
			return "; did you mean " + like + "?"
		}
	}
	return ""
}
