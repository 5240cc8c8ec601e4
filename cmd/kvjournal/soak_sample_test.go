package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kvjournal/kvjournal/query"
)

// soakSample is what was measured at one moment.
type soakSample struct {
	Seconds float64 `json:"seconds"` // since the beginning
	RSS     float64 `json:"rss_mib"`
	Files   int     `json:"files"` // open descriptors
	Threads int     `json:"threads"`
	Dir     float64 `json:"dir_mib"`
	Events  uint64  `json:"events"`
	Rate    float64 `json:"events_per_second"`
	Lag     uint64  `json:"lag"`
	Buffer  float64 `json:"buffer_mib"`
}

const (
	sampleEvery = 5 * time.Second
	mib         = 1 << 20
)

// sample measures every few seconds until the run is over, and writes each sample down as it comes.
func (s *soak) sample(t *testing.T) {
	f, err := os.Create(filepath.Join(s.out, "samples.jsonl"))
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	out := json.NewEncoder(f)
	s.often(sampleEvery, func(int) {
		p := soakSample{Seconds: time.Since(s.begun).Seconds(), Dir: float64(sizeOf(s.dir)) / mib}
		p.RSS, p.Threads = processMemory(s.rec.cmd.Process.Pid)
		if names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.rec.cmd.Process.Pid)); err == nil {
			p.Files = len(names)
		}
		var st query.StatsOut
		if r := s.ask.timed(t, "stats", "", "stats", "--dir", s.dir, "--output", "json"); json.Unmarshal([]byte(r.stdout), &st) == nil {
			p.Events, p.Lag = st.Events, st.Index.Lag
			if st.Recorder != nil {
				p.Buffer = float64(st.Recorder.BufferBytes) / mib
			}
		}
		if n := len(s.samples); n > 0 && p.Events >= s.samples[n-1].Events {
			p.Rate = float64(p.Events-s.samples[n-1].Events) / (p.Seconds - s.samples[n-1].Seconds)
		}
		s.samples = append(s.samples, p)
		if err := out.Encode(&p); err != nil {
			t.Error(err)
		}
	})
}

// processMemory is what a process has resident, in MiB, and its threads.
func processMemory(pid int) (rss float64, threads int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		switch n, _ := strconv.Atoi(fields[0]); name { // 0 where it is no number
		case "VmRSS":
			rss = float64(n) / 1024
		case "Threads":
			threads = n
		}
	}
	return rss, threads
}

// sizeOf is what the files below dir take. Files come and go meanwhile.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
