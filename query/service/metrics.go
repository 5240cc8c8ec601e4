package service

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metricPrefix begins the names of all metrics that are not of Go or the process.
const metricPrefix = "kvjournal_"

// metrics are a service's, in a registry of their own. Most are figures that are kept anyway, read when they are asked for; a commit and
// a question cost one observation each.
type metrics struct {
	registry *prometheus.Registry
	handler  http.Handler

	commitSeconds prometheus.Histogram
	commitRecords prometheus.Histogram
	asked         *prometheus.HistogramVec
}

// reader says the figures of a moment.
type reader interface{ figures(*figures) }

// newMetrics makes the metrics of what r reads.
func newMetrics(r reader) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	m.commitSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: metricPrefix + "commit_duration_seconds", Help: "Time from a group's end to when it was durable.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
	})
	m.commitRecords = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: metricPrefix + "commit_records", Help: "Records of a group that became durable together.",
		Buckets: prometheus.ExponentialBuckets(1, 4, 8),
	})
	m.asked = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: metricPrefix + "http_request_duration_seconds", Help: "Time to answer, by path and status; of those who follow, until they end.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
	}, []string{"path", "status"})
	m.registry.MustRegister(
		m.commitSeconds, m.commitRecords, m.asked, newFigures(r), collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, DisableCompression: true})
	return m
}

// committed is told of each commit.
func (m *metrics) committed(records int, took time.Duration) {
	m.commitSeconds.Observe(took.Seconds())
	m.commitRecords.Observe(float64(records))
}

// answered is told of each question.
func (m *metrics) answered(path string, status int, took time.Duration) {
	m.asked.WithLabelValues(path, statusLabel(status)).Observe(took.Seconds())
}

// statusLabel is the status as a label, without formatting what is usual.
func statusLabel(status int) string {
	switch {
	case status == 200:
		return "200"
	case status >= 500:
		return "5xx"
	case status >= 400:
		return "4xx"
	}
	return "other"
}

// figures collects the metrics of metricTable.
type figures struct {
	reader reader
	by     map[string]figure
	out    chan<- prometheus.Metric
}

type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newFigures(r reader) *figures {
	f := &figures{reader: r, by: map[string]figure{}}
	for _, row := range metricTable() {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(row.name, "_total") {
			kind = prometheus.CounterValue
		}
		f.by[row.name] = figure{prometheus.NewDesc(metricPrefix+row.name, row.help, row.labels, nil), kind}
	}
	return f
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, m := range f.by {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(out chan<- prometheus.Metric) {
	f.reader.figures(&figures{by: f.by, out: out})
}

// say tells a figure.
func (f *figures) say(name string, value float64, labels ...string) {
	m := f.by[name]
	f.out <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

// yes tells a figure that is 1 or 0.
func (f *figures) yes(name string, value bool, labels ...string) {
	v := 0.0
	if value {
		v = 1
	}
	f.say(name, v, labels...)
}
