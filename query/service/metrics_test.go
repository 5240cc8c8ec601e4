package service

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// everything tells each metric of the table once.
type everything struct{ labels func(row *metricRow) []string }

func (e everything) figures(f *figures) {
	for _, row := range metricTable() {
		f.say(row.name, 1, e.labels(&row)...)
	}
}

// The metrics follow Prometheus' conventions, and those in the table are all there are.
func TestMetricsLint(t *testing.T) {
	m := newMetrics(everything{func(row *metricRow) []string {
		out := make([]string, len(row.labels))
		for i, name := range row.labels {
			out[i] = "a " + name
		}
		return out
	}})
	m.committed(3, 1)
	m.answered("/v1/lookup", 200, 1)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	own := families[:0:0]
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), metricPrefix) {
			own = append(own, f)
		}
	}
	if want := len(metricTable()) + 3; len(own) != want {
		t.Errorf("%d metrics, want %d", len(own), want)
	}
	problems, err := promlint.NewWithMetricFamilies(own).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
