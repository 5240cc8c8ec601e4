package near

import (
	"slices"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"limit", "limit", 0}, {"limt", "limit", 1}, {"liimt", "limit", 1}, {"form", "from", 1}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"", "abc", 3}, {"keep", "kepe", 1}, {"abcd", "badc", 2}, {"dir", "endpoint", 6}} {
		if got := distance(c.a, c.b); got != c.want || distance(c.b, c.a) != got {
			t.Errorf("%q to %q: %d changes, want %d, both ways", c.a, c.b, got, c.want)
		}
	}
}

func TestMeant(t *testing.T) {
	names := []string{"source", "tenant_id", "tenant_id_base64", "object_key", "object_key_base64", "from", "to", "limit", "page", "no_objects"}
	for name, want := range map[string]string{
		"limt": "limit", "tenant": "tenant_id tenant_id_base64", "key": "object_key object_key_base64", "objectKey": "object_key", "object-key": "object_key",
		"keys": "object_key object_key_base64", "form": "from", "FROM": "from", "objects": "no_objects", "colour": "", "x": "", "": "", "_": "",
		strings.Repeat("limit", 20): "",
	} {
		if got := strings.Join(Meant(name, names), " "); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
	if like, near := Nearest("x", nil); like != "" || near {
		t.Errorf("of nothing: %q, %v", like, near)
	}
	if like, near := Nearest("lmiit", names); like != "limit" || !near {
		t.Errorf("lmiit: %q %v", like, near)
	}
	if _, near := Nearest(strings.Repeat("x", 1<<20), names); near {
		t.Error("a name of 1 MiB is near to one")
	}
	if !slices.IsSorted(Meant("tenant", names)) {
		t.Error("not in their order")
	}
}
