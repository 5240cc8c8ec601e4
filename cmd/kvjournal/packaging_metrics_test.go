package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kvjournal/kvjournal/query/service"
)

var metricName = regexp.MustCompile(`kvjournal_[a-z0-9_]+`)

// Every metric that the alert rules and the dashboard name exists, and every alert says what to do.
func TestRulesAndDashboard(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("packaging", "prometheus")
	known := service.MetricNames()
	for _, file := range []string{"alerts.yml", "dashboard.json"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(b), -1)
		if len(names) < 20 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				t.Errorf("%s names %s, which there is not", file, name)
			}
		}
		switch {
		case file == "dashboard.json":
			if !json.Valid(b) {
				t.Error("the dashboard is no JSON")
			}
		case strings.Count(string(b), "- alert: ") != strings.Count(string(b), "todo: ") || strings.Count(string(b), "- alert: ") != strings.Count(string(b), "summary: "):
			t.Error("an alert does not say what it means and what to do")
		}
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (apt-get install prometheus): the rules' syntax is not checked")
	}
	if out, err := exec.Command(promtool, "check", "rules", filepath.Join(dir, "alerts.yml")).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	if out, err := exec.Command(promtool, "test", "rules", filepath.Join(dir, "alerts_test.yml")).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}
