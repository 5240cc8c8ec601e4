package measure

import (
	"math"
	"slices"
	"time"
)

// Percentile returns the p-th percentile, 0 to 100, by the nearest rank. It sorts; NaN where there is nothing.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	rank := int(math.Ceil(p/100*float64(len(values)))) - 1
	return values[min(max(rank, 0), len(values)-1)]
}

// Median is the middle one, or the mean of the two in the middle. It sorts.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Each calls f n times and returns how long each took, in microseconds.
func Each(n int, f func(i int) error) ([]float64, error) {
	out := make([]float64, n)
	for i := range n {
		begun := time.Now()
		err := f(i)
		out[i] = float64(time.Since(begun).Nanoseconds()) / 1e3
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
