package report

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/kvjournal/kvjournal/bench/measure"
)

// Result is a median over rounds.
type Result struct {
	Contender  string  `json:"contender"`
	Workload   string  `json:"workload"` // with the shape of the messages behind a slash: append/64
	Metric     string  `json:"metric"`
	Value      float64 `json:"value"`
	Unit       string  `json:"unit"`
	Durability string  `json:"durability"`
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Rounds     int     `json:"rounds"`
}

// Samples collects what each round measured.
type Samples struct {
	results []Result
	values  [][]float64
	at      map[[3]string]int
}

// Add adds one round's value.
func (s *Samples) Add(contender, durability, workload, metric, unit string, value float64) {
	if s.at == nil {
		s.at = map[[3]string]int{}
	}
	k := [3]string{contender, workload, metric}
	i, known := s.at[k]
	if !known {
		i = len(s.results)
		s.at[k] = i
		s.results = append(s.results, Result{Contender: contender, Workload: workload, Metric: metric, Unit: unit, Durability: durability})
		s.values = append(s.values, nil)
	}
	s.values[i] = append(s.values[i], value)
}

// Results are the medians, in the order in which they were first added.
func (s *Samples) Results() []Result {
	out := slices.Clone(s.results)
	for i := range out {
		v := slices.Clone(s.values[i])
		out[i].Value, out[i].Min, out[i].Max, out[i].Rounds = measure.Median(v), slices.Min(v), slices.Max(v), len(v)
	}
	return out
}

// WriteJSON writes the results as one array, a result a line.
func WriteJSON(path string, results []Result) error {
	b := []byte("[")
	for i := range results {
		if i > 0 {
			b = append(b, ',')
		}
		one, err := json.Marshal(&results[i])
		if err != nil {
			return err
		}
		b = append(append(b, '\n'), one...)
	}
	return os.WriteFile(path, append(b, "\n]\n"...), 0o644)
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(path string) ([]Result, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Result
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// find returns the result of a contender; false where there is none.
func find(results []Result, contender, workload, metric string) (Result, bool) {
	for _, r := range results {
		if r.Contender == contender && r.Workload == workload && r.Metric == metric {
			return r, true
		}
	}
	return Result{}, false
}
