package run

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/bench/contender"
	"github.com/kvjournal/kvjournal/bench/message"
	"github.com/kvjournal/kvjournal/bench/report"
)

// tiny is a run of seconds.
func tiny(t *testing.T) Options {
	return Options{
		Rounds: 2, Events: map[string]int{"64": 4500, "1": 700, "day": 9000}, Objects: 500, Acks: 3, Gets: 20, Lookups: 100, Seed: 7,
		Dir: t.TempDir(), Unquiet: true,
	}
}

// Every contender does every workload that it can on every shape; what comes back is compared by the harness itself.
func TestContest(t *testing.T) {
	results, err := Contest(t.Context(), tiny(t))
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, r := range results {
		if r.Rounds != 2 || !(r.Min <= r.Value && r.Value <= r.Max) || r.Durability == "" || r.Unit == "" {
			t.Errorf("a result that cannot be: %+v", r)
		}
		if r.Value <= 0 && r.Metric != "settle" && r.Metric != "processor" {
			t.Errorf("%s %s %s is %v", r.Contender, r.Workload, r.Metric, r.Value)
		}
		has[r.Contender+" "+r.Workload] = true
	}
	for _, k := range contender.All() {
		want := []string{"ack", "append", "open", "disk", "read"}
		if k.KeepsPayload {
			want = append(want, "get")
		}
		if k.OpenPlaces != nil {
			want = append(want, "track", "track_open", "track_disk", "now", "at", "history")
		}
		if k.Name == report.Base {
			want = append(want, "rebuild")
		}
		for _, shape := range message.Shapes {
			for _, w := range want {
				if !has[k.Name+" "+w+"/"+shape] {
					t.Errorf("%s did no %s of shape %s", k.Name, w, shape)
				}
			}
		}
	}
	toldWhole(t, results, "append.svg", "disk.svg", "read.svg", "track.svg", "questions.svg")
}

func TestGrowth(t *testing.T) {
	results, err := Growth(t.Context(), tiny(t), []int{4000, 9000})
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range []string{"append", "index", "disk", "open_after_crash", "now_hit_p50", "at_uniform_p99", "memory_asking"} {
		n := 0
		for _, r := range results {
			if r.Metric == metric && r.Value > 0 {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s was measured at %d sizes of 2", metric, n)
		}
	}
	toldWhole(t, results, "growth.svg")
}

// Another contender can be grown beside; it indexes as it appends.
func TestGrowthOfAnother(t *testing.T) {
	o := tiny(t)
	o.Contenders = []string{"sqlite"}
	results, err := Growth(t.Context(), o, []int{4000})
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]bool{}
	for _, r := range results {
		if has[r.Metric] = true; r.Contender != "sqlite" {
			t.Errorf("%s of %s", r.Metric, r.Contender)
		}
	}
	if !has["append"] || !has["at_hot_p50"] || has["index"] {
		t.Errorf("measured: %v", has)
	}
}

// A contender that answers otherwise than the one before is found out.
func TestDisagreement(t *testing.T) {
	h := heat{contest: &contest{answers: map[string]uint64{}}, set: &message.Set{Shape: "day"}}
	if err := errors.Join(h.agree("at", 1), h.agree("at", 1), h.agree("history", 2)); err != nil {
		t.Error("the same answers: ", err)
	}
	if h.agree("at", 2) == nil {
		t.Error("another answer was accepted")
	}
}

// toldWhole checks that results survive JSON, that the table has all contenders, and that the plots are there and are XML.
func toldWhole(t *testing.T, results []report.Result, plots ...string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "latest.json")
	if err := report.WriteJSON(path, results); err != nil {
		t.Fatal(err)
	}
	if back, err := report.ReadJSON(path); err != nil || !slices.Equal(back, results) {
		t.Errorf("JSON gives back other results (%v)", err)
	}
	var table bytes.Buffer
	if err := report.Table(&table, results); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !strings.Contains(table.String(), r.Contender) || !strings.Contains(table.String(), strings.ReplaceAll(r.Metric, "_", " ")) {
			t.Errorf("the table lacks %s of %s:\n%s", r.Metric, r.Contender, table.String())
			break
		}
	}
	if err := report.Plots(dir, results); err != nil {
		t.Fatal(err)
	}
	for _, name := range plots {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(bytes.NewReader(b)); err == nil; {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s is no XML: %v", name, err)
		}
	}
}
