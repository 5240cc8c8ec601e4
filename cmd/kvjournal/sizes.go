package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// parseSize reads a number of bytes with a unit: 100GB, 1.5 GiB, 500000.
func parseSize(text string) (uint64, error) {
	number := strings.TrimSpace(text)
	for _, u := range sizeUnits {
		rest, found := strings.CutSuffix(strings.ToUpper(number), u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if bytes := n * u.bytes; err == nil && n >= 0 && bytes < math.MaxInt64 { // not NaN either
			return uint64(bytes), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is no size; write 500MB, 100GB, 1GiB or a number of bytes", text)
}

// parseSome is parseSize for what has to be some bytes at least.
func parseSome(text string) (uint64, error) {
	n, err := parseSize(text)
	if err == nil && n == 0 {
		err = fmt.Errorf("%q is nothing; write 500MB, 100GB, 1GiB or a number of bytes", text)
	}
	return n, err
}
