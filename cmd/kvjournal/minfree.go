package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/kvjournal/kvjournal/query/service"
)

// defaultMinFree leaves room for what goes on while recording pauses: compactions, and the index that catches up.
const defaultMinFree = "1GiB"

// smallDisk is the share of a disk that the default never goes beyond.
const smallDisk = 20 // a twentieth

// leastFree is --min-free in bytes: as given, or, by default, no more than a twentieth of the disk.
func (f *recordFlags) leastFree(given bool) (uint64, error) {
	least, err := parseSize(f.minFree)
	if err != nil {
		return 0, fmt.Errorf("--min-free: %w", err)
	}
	if given {
		return least, nil
	}
	if total := diskOf(f.dir); total > 0 {
		least = min(least, total/smallDisk)
	}
	return least, nil
}

// diskOf is the size of the disk that dir is on, or will be; 0 where that cannot be told.
func diskOf(dir string) uint64 {
	size, err := service.VolumeSize(nil, dir)
	if err != nil {
		return 0
	}
	return size
}

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
